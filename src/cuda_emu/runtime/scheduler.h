// Which thread of the block runs next.  Inline, since a barrier does little else.
#ifndef CUDA_EMU_SCHEDULER_H_
#define CUDA_EMU_SCHEDULER_H_

#include "context.h"
#include "worker.h"

namespace cuda_emu {

/// A fiber that will start threads.
Fiber* FreshFiber();

/// Who can run; null: nobody.
inline Fiber* PickNext() {
  Worker& worker = *this_worker;
  if (Fiber* fiber = worker.ready.Pop()) return fiber;
  if (worker.block.queue.next == worker.block.queue.size) return nullptr;
  worker.block.started++;
  return FreshFiber();
}

/// Leave the running stack for that of `fiber`, or for the scheduler's own (null).  Returns when somebody comes back.
inline void SwitchTo(Fiber* fiber, void** save) {
  Worker& worker = *this_worker;
  worker.running = fiber;
  if (fiber != nullptr && fiber->parked != Parked::kNo) {
    threadIdx = fiber->thread;
    fiber->parked = Parked::kNo;
  }
  cuda_emu_switch(save, fiber != nullptr ? fiber->sp : worker.scheduler_sp);
}

/// The running thread waits.
inline void Park(Parked why, const Site& site) {
  Fiber* fiber = this_worker->running;
  fiber->thread = threadIdx;
  fiber->linear = LinearThread();
  fiber->parked = why;
  fiber->site = site;
  SwitchTo(PickNext(), &fiber->sp);
}

/// Nobody can run, and threads still wait: either release some after all, or report why they wait.
void Unstick();

/// The barrier is over; those who wait for it may go on.
void ReleaseBarrier();
/// Some threads have ended and the others all wait at a barrier.
void ReportMissingThreads(const Site& site);

unsigned ExistingLanes(unsigned warp);
unsigned UnfinishedLanes(unsigned warp);
/// Give every lane that has come its result, and let it go on.
void EndMeeting(Meeting& meeting, unsigned warp);

/// Refuse a call outside of kernels.
void NeedKernel(const Site& site);

}  // namespace cuda_emu

#endif  // CUDA_EMU_SCHEDULER_H_
