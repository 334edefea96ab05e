// When no thread of a block can run and some still wait.  A GPU might hang; here it is found out and said.
#include <string>

#include "errors.h"
#include "options.h"
#include "scheduler.h"

namespace cuda_emu {

namespace {

unsigned FirstLane(unsigned lanes) {
  return static_cast<unsigned>(__builtin_ctz(lanes));
}

const Fiber* FiberOf(unsigned linear) {
  for (unsigned i = 0; i < this_worker->n_fibers; i++) {
    const Fiber& fiber = this_worker->fibers[i];
    if (fiber.parked != Parked::kNo && fiber.linear == linear) return &fiber;
  }
  return nullptr;
}

template <class Visit>
bool AnyMeeting(Visit visit) {
  const unsigned n_warps = (this_worker->block.queue.size + kWarpSize - 1) / kWarpSize;
  bool any = false;
  for (unsigned warp = 0; warp < n_warps; warp++) {
    for (Meeting& meeting : this_worker->block.warps[warp].meetings) {
      if (meeting.used && visit(meeting, warp)) any = true;
    }
  }
  return any;
}

// Meetings whose missing lanes have all ended can end.
bool EndMeetingsWithoutEndedLanes() {
  return AnyMeeting([](Meeting& meeting, unsigned warp) {
    if (meeting.arrived != (meeting.mask & UnfinishedLanes(warp))) return false;
    threadIdx = meeting.fiber[FirstLane(meeting.arrived)]->thread;
    EndMeeting(meeting, warp);
    return true;
  });
}

bool ReportWaitingMeeting() {
  return AnyMeeting([](Meeting& meeting, unsigned warp) {
    const unsigned lane = FirstLane(meeting.mask & UnfinishedLanes(warp) & ~meeting.arrived);
    const Fiber* other = FiberOf(warp * kWarpSize + lane);
    threadIdx = meeting.fiber[FirstLane(meeting.arrived)]->thread;
    Report(cudaErrorLaunchFailure,
           "deadlock: " + Text(meeting.site) + " waits for lane " + std::to_string(lane) + " of warp " +
               std::to_string(warp) + ", which " + (other == nullptr ? "never comes" : "waits in " + Text(other->site)),
           {nullptr, nullptr, &meeting.site});
    return true;
  });
}

void ReportBarrier() {
  const Block& block = this_worker->block;
  const Fiber* first = block.waiting.head;
  threadIdx = first->thread;
  if (!block.barriers_differ) return ReportMissingThreads(block.barrier);
  const Fiber* other = first;
  while (other->next != nullptr && SamePlace(other->site, first->site)) other = other->next;
  Report(cudaErrorLaunchFailure,
         "divergent barrier: thread " + Text(first->thread) + " waits in " + Text(first->site) + ", thread " +
             Text(other->thread) + " in " + Text(other->site) + ", and " +
             Count(block.queue.size - block.arrived, "thread") + " of the block ended without a barrier",
         {nullptr, nullptr, &first->site});
}

}  // namespace

void Unstick() {
  Worker& worker = *this_worker;
  if (EndMeetingsWithoutEndedLanes()) return;
  if (!ReportWaitingMeeting()) {
    const Block& block = worker.block;
    if (block.arrived > 0 && !options.strict) return ReleaseBarrier();
    if (block.arrived > 0) {
      ReportBarrier();
    } else {
      Report(cudaErrorLaunchFailure, "deadlock: every thread of the block waits", {});
    }
  }
  worker.failed = true;
}

}  // namespace cuda_emu
