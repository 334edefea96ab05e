// Which thread of the block runs next.  Inline, since a barrier does little else.
#ifndef CUDA_EMU_SCHEDULER_H_
#define CUDA_EMU_SCHEDULER_H_

#include "context.h"
#include "worker.h"

namespace cuda_emu {

/// A fiber that will start threads, the next one first.
Fiber* FreshFiber();

/// Who can run; null: nobody.
inline Fiber* PickNext() {
  Worker& worker = *this_worker;
  if (Fiber* fiber = worker.ready.Pop()) return fiber;
  return worker.block.queue.next < worker.block.queue.size ? FreshFiber() : nullptr;
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

/// The running thread makes way for another, or for the scheduler (null).
inline void MakeWayFor(Fiber* other, Parked why) {
  Fiber* self = this_worker->running;
  self->thread = threadIdx;
  self->linear = LinearThread();
  self->parked = why;
  SwitchTo(other, &self->sp);
}

/// The running thread waits.
inline void Park(Parked why, const Site& site) {
  this_worker->running->site = site;
  MakeWayFor(PickNext(), why);
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

inline bool SamePlace(const Site& a, const Site& b) {
  return a.line == b.line && a.file == b.file;
}

/// Refuse a call outside of kernels.
void NeedKernel(const Site& site);

}  // namespace cuda_emu

#endif  // CUDA_EMU_SCHEDULER_H_
