// What the 32 lanes of a warp do together: shuffles, votes, __syncwarp.  Each is a meeting of the lanes of a mask.
#include <string>

#include "errors.h"
#include "options.h"
#include "scheduler.h"

namespace cuda_emu {

namespace {

std::string LaneText(unsigned lane, unsigned warp) {
  return "lane " + std::to_string(lane) + " of warp " + std::to_string(warp);
}

[[noreturn]] void FailWarp(const Site& site, const std::string& text) {
  Fail(cudaErrorLaunchFailure, Text(site) + ": " + text, {nullptr, nullptr, &site});
}

void ReportReadOfAbsentLane(const Meeting& meeting, unsigned lane, unsigned source, unsigned warp) {
  std::string why = "whose thread has ended";
  if ((ExistingLanes(warp) >> source & 1) == 0) {
    why = "which does not exist: the block's last warp is not full";
  } else if ((meeting.mask >> source & 1) == 0) {
    why = "which the mask " + Hex(meeting.mask) + " leaves out";
  }
  Report(cudaErrorLaunchFailure,
         Text(meeting.site) + ": " + LaneText(lane, warp) + " reads lane " + std::to_string(source) + ", " + why +
             "; the value is undefined",
         {nullptr, nullptr, &meeting.site});
  this_worker->failed = true;
}

// The meeting of this mask: the one that others wait in, or a new one.
Meeting& FindMeeting(Warp& warp, const Site& site, unsigned mask, unsigned lane) {
  Meeting* fresh = nullptr;
  for (Meeting& meeting : warp.meetings) {
    if (!meeting.used) {
      if (fresh == nullptr) fresh = &meeting;
    } else if (meeting.mask == mask) {
      return meeting;
    } else if (meeting.mask & mask) {
      FailWarp(site, "lane " + std::to_string(lane) + " passes the mask " + Hex(mask) +
                         ", but lanes of the same warp wait in " + Text(meeting.site) + " with the mask " +
                         Hex(meeting.mask));
    }
  }
  if (fresh == nullptr) FailWarp(site, "more than 16 groups of one warp wait at once");
  fresh->used = true;
  fresh->mask = mask;
  fresh->arrived = 0;
  return *fresh;
}

uint64_t ResultOf(const Meeting& meeting, unsigned lane, unsigned ballot, unsigned warp) {
  if (meeting.what == WarpOperation::kBallot) return ballot;
  if (meeting.what == WarpOperation::kSync) return 0;
  const unsigned source = meeting.source[lane] & 31;
  if (meeting.arrived >> source & 1) return meeting.value[source];
  if (options.strict) ReportReadOfAbsentLane(meeting, lane, source, warp);
  return 0;
}

}  // namespace

unsigned LaneId() {
  return LinearThread() % kWarpSize;
}

unsigned ExistingLanes(unsigned warp) {
  const unsigned n = this_worker->block.queue.size - warp * kWarpSize;
  return n >= kWarpSize ? ~0u : (1u << n) - 1;
}

unsigned UnfinishedLanes(unsigned warp) {
  const Worker& worker = *this_worker;
  const ThreadQueue& queue = worker.block.queue;
  unsigned lanes = 0;
  auto add = [&](unsigned linear) {
    if (linear / kWarpSize == warp) lanes |= 1u << linear % kWarpSize;
  };
  for (unsigned i = 0; i < worker.n_fibers; i++) {
    if (worker.fibers[i].parked != Parked::kNo) add(worker.fibers[i].linear);
  }
  if (worker.running != nullptr) add(LinearThread());
  for (unsigned t = queue.next; t < queue.size; t++) add(queue.order == nullptr ? t : queue.order[t]);
  return lanes;
}

unsigned ActiveMask() {
  return InKernel() ? UnfinishedLanes(LinearThread() / kWarpSize) : 0;
}

void EndMeeting(Meeting& meeting, unsigned warp) {
  Worker& worker = *this_worker;
  unsigned ballot = 0;
  for (unsigned lane = 0; lane < kWarpSize; lane++) {
    if ((meeting.arrived >> lane & 1) && meeting.value[lane] != 0) ballot |= 1u << lane;
  }
  for (unsigned lane = 0; lane < kWarpSize; lane++) {
    if ((meeting.arrived >> lane & 1) == 0) continue;
    Fiber* fiber = meeting.fiber[lane];
    (fiber != nullptr ? fiber : worker.running)->result = ResultOf(meeting, lane, ballot, warp);
    if (fiber != nullptr) worker.ready.Push(fiber);
  }
  worker.block.warp_epochs[warp]++;
  meeting.used = false;
  if (worker.failed && worker.running != nullptr) LeaveKernel();
}

uint64_t WarpCollective(const Site& site, unsigned mask, uint64_t value, int source, WarpOperation what) {
  NeedKernel(site);
  const unsigned linear = LinearThread(), lane = linear % kWarpSize, warp = linear / kWarpSize;
  if ((mask >> lane & 1) == 0) {
    FailWarp(site, LaneText(lane, warp) + " passes the mask " + Hex(mask) + ", which leaves out the lane itself");
  }
  Meeting& meeting = FindMeeting(this_worker->block.warps[warp], site, mask, lane);
  if (meeting.arrived == 0) {
    meeting.site = site;
    meeting.what = what;
  } else if (meeting.what != what || (options.strict && !SamePlace(meeting.site, site))) {
    FailWarp(site, "the warp diverges: " + LaneText(lane, warp) + " comes here, but other lanes of its mask are in " +
                       Text(meeting.site));
  }
  meeting.arrived |= 1u << lane;
  meeting.value[lane] = value;
  meeting.source[lane] = source;
  if (meeting.arrived == (mask & ExistingLanes(warp))) {
    meeting.fiber[lane] = nullptr;  // the running one
    EndMeeting(meeting, warp);
  } else {
    meeting.fiber[lane] = this_worker->running;
    Park(Parked::kInWarp, site);
  }
  return this_worker->running->result;
}

}  // namespace cuda_emu
