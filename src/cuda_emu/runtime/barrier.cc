// __syncthreads() and its relatives.
#include <algorithm>
#include <string>
#include <vector>

#include "errors.h"
#include "options.h"
#include "scheduler.h"

namespace cuda_emu {

namespace {

void Reorder(FiberQueue& queue) {
  std::vector<Fiber*> fibers;
  while (Fiber* fiber = queue.Pop()) fibers.push_back(fiber);
  if (options.order == Order::kReverse) {
    std::reverse(fibers.begin(), fibers.end());
  } else {
    std::shuffle(fibers.begin(), fibers.end(), this_worker->random);
  }
  for (Fiber* fiber : fibers) queue.Push(fiber);
}

[[noreturn]] void FailDifferentBarriers(const Site& mine) {
  size_t n = 0;
  const Fiber* other = nullptr;
  for (const Fiber* fiber = this_worker->block.waiting.head; fiber != nullptr; fiber = fiber->next) {
    if (SamePlace(fiber->site, mine)) continue;
    if (other == nullptr) other = fiber;
    n++;
  }
  Fail(cudaErrorLaunchFailure,
       "divergent barrier: " + Count(n, "thread") + ", " + Text(other->thread) + " among them, in " +
           Text(other->site) + ", but thread " + Text(threadIdx) + " in " + Text(mine) +
           "; all threads of a block must come to the same barrier",
       {nullptr, nullptr, &mine});
}

// Come to the barrier; return when all have.
inline void Arrive(const Site& site) {
  Block& block = this_worker->block;
  if (block.arrived == 0) {
    block.barrier = site;
    block.barriers_differ = false;
  } else if (!SamePlace(site, block.barrier)) {
    block.barriers_differ = true;
  }
  block.arrived++;
  if (block.arrived < block.Unfinished()) {
    block.waiting.Push(this_worker->running);
    Park(Parked::kAtBarrier, site);
    return;
  }
  if (options.strict && block.barriers_differ) FailDifferentBarriers(site);
  if (options.strict && block.arrived < block.queue.size) {
    ReportMissingThreads(site);
    Fail(cudaErrorLaunchFailure, "", {nullptr, nullptr, &site});  // what counts is what was reported first
  }
  ReleaseBarrier();
}

}  // namespace

void ReportMissingThreads(const Site& site) {
  const Block& block = this_worker->block;
  Report(
      cudaErrorLaunchFailure,
      "barrier not reached by all: " + Count(block.queue.size - block.arrived, "thread") + " of the block's " +
          std::to_string(block.queue.size) + " ended without " + Text(site) +
          ", where the others wait; do not `return` before a barrier or put it under an `if`: put the loads and stores "
          "under the `if` instead",
      {nullptr, nullptr, &site});
}

void ReleaseBarrier() {
  Block& block = this_worker->block;
  block.epoch++;
  block.results[static_cast<int>(BarrierResult::kCount)] = block.count;
  block.results[static_cast<int>(BarrierResult::kAnd)] = block.all;
  block.results[static_cast<int>(BarrierResult::kOr)] = block.any;
  block.arrived = block.count = block.any = 0;
  block.all = 1;
  if (options.order != Order::kForward) Reorder(block.waiting);
  this_worker->ready.Append(block.waiting);
}

void Barrier(const Site& site) {
  NeedKernel(site);
  Arrive(site);
}

int ReducingBarrier(const Site& site, int predicate, BarrierResult which) {
  NeedKernel(site);
  Block& block = this_worker->block;
  block.count += predicate != 0;
  block.all &= predicate != 0;
  block.any |= predicate != 0;
  Arrive(site);
  return this_worker->block.results[static_cast<int>(which)];
}

}  // namespace cuda_emu
