#include "scheduler.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iterator>

#include "arena.h"
#include "checks.h"
#include "errors.h"
#include "options.h"
#include "shared_memory.h"

CUDA_EMU_THREAD_LOCAL uint3 threadIdx;
CUDA_EMU_THREAD_LOCAL uint3 blockIdx;
CUDA_EMU_THREAD_LOCAL dim3 blockDim;
CUDA_EMU_THREAD_LOCAL dim3 gridDim;

namespace cuda_emu {

__thread Worker* this_worker;

namespace {

size_t StackStep() {
  return options.stack_bytes + kPage;  // a guard page below each
}

// A fiber begins here: it starts threads until there are no more, or the one that it started last has parked it for
// good.
void FiberEntry() {
  std::exception_ptr exception;
  try {
    const Grid& grid = *this_worker->grid;
    grid.run_threads(&this_worker->block.queue, grid.body);
  } catch (...) {
    exception = std::current_exception();
  }
  if (exception) FailWith(std::move(exception));
  Worker& worker = *this_worker;
  Fiber* self = worker.running;
  worker.block.started--;
  self->next = worker.free_fibers;
  worker.free_fibers = self;
  void* never_resumed;
  SwitchTo(PickNext(), &never_resumed);
  std::abort();
}

Fiber* NewFiber(Worker& worker) {
  if (worker.n_fibers == kMaxThreads) std::abort();
  const size_t index = worker.n_fibers++;
  Fiber* fiber = &worker.fibers[index];
  fiber->stack = worker.stacks_begin + index * StackStep() + kPage;
  fiber->stack_bytes = options.stack_bytes;
  mprotect(fiber->stack, fiber->stack_bytes, PROT_READ | PROT_WRITE);
  return fiber;
}

void ForgetHangingFibers(Worker& worker) {
  worker.free_fibers = nullptr;
  for (unsigned i = 0; i < worker.n_fibers; i++) {
    Fiber& fiber = worker.fibers[i];
    fiber.parked = Parked::kNo;
    fiber.next = worker.free_fibers;
    worker.free_fibers = &fiber;
  }
  for (Warp& warp : worker.block.warps) {
    for (Meeting& meeting : warp.meetings) meeting.used = false;
  }
}

// Who asks is this thread itself, or a handler of its signals: no fence for others is needed, which would cost as much
// as thirty threads of the block.
void SetInKernel(Worker& worker, bool in_kernel) {
  worker.in_kernel.store(in_kernel, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

void BeginBlock(Worker& worker, uint32_t linear, uint3 index) {
  Block& block = worker.block;
  block.linear = linear;
  blockIdx = index;
  threadIdx = {0, 0, 0};
  block.queue.next = block.started = block.arrived = 0;
  block.epoch = 0;
  block.waiting = worker.ready = FiberQueue();
  block.count = block.any = 0;
  block.all = 1;
  std::fill(std::begin(block.warp_epochs), std::end(block.warp_epochs), 0);
  worker.failed = worker.timed_out = false;
  if (options.order == Order::kRandom) std::shuffle(worker.order.begin(), worker.order.end(), worker.random);
  PoisonShared();
  checks->BlockStarts();
}

}  // namespace

Fiber* FreshFiber() {
  Worker& worker = *this_worker;
  worker.block.started++;
  Fiber* fiber = worker.free_fibers;
  if (fiber != nullptr) {
    worker.free_fibers = fiber->next;
  } else {
    fiber = NewFiber(worker);
  }
  // stacks begin at different offsets, or all of them would want the same places of the cache
  const size_t offset = 64 + (fiber - worker.fibers) % 29 * 128;
  fiber->sp = MakeContext(fiber->stack + fiber->stack_bytes - offset, FiberEntry);
  fiber->parked = Parked::kNo;
  fiber->next = nullptr;
  return fiber;
}

Worker* NewWorker() {
  auto* worker = new Worker{};
  worker->shared_begin = Reserve(kSharedArenaBytes + kPage, false);
  worker->shared_end = worker->shared_begin + kSharedArenaBytes;  // the page behind it guards it
  const size_t stacks = StackStep() * kMaxThreads + kPage;
  worker->stacks_begin = Reserve(stacks, false);
  worker->stacks_end = worker->stacks_begin + stacks;
  worker->signal_stack = Reserve(kSignalStackBytes, true);
  if (worker->shared_begin == nullptr || worker->stacks_begin == nullptr || worker->signal_stack == nullptr) {
    std::fprintf(stderr, "[cuda_emu] no memory for the stacks of %u threads (NEEDLE_CUDA_EMU_STACK)\n", kMaxThreads);
    std::abort();
  }
  mprotect(worker->shared_begin, kSharedArenaBytes, PROT_READ | PROT_WRITE);
  return worker;
}

void RunBlock(uint32_t linear, uint3 index) {
  Worker& worker = *this_worker;
  Block& block = worker.block;
  BeginBlock(worker, linear, index);
  SetInKernel(worker, true);
  while (!worker.failed && (block.started > 0 || block.queue.next < block.queue.size)) {
    if (Fiber* fiber = PickNext()) {
      SwitchTo(fiber, &worker.scheduler_sp);
    } else {
      Unstick();
    }
  }
  if (!worker.failed) CheckCanaries();
  SetInKernel(worker, false);
  worker.running = nullptr;
  checks->BlockEnds();
  if (worker.failed) ForgetHangingFibers(worker);
}

void Yield() {
  if (!InKernel()) return;
  Worker& worker = *this_worker;
  // who has not started goes first
  Fiber* other = worker.block.queue.next < worker.block.queue.size ? FreshFiber() : worker.ready.Pop();
  if (other == nullptr) return;
  worker.ready.Push(worker.running);
  MakeWayFor(other, Parked::kReady);
}

void NeedKernel(const Site& site) {
  if (InKernel()) return;
  std::fprintf(stderr, "[cuda_emu] %s is called outside of a kernel\n", Text(site).c_str());
  std::abort();
}

}  // namespace cuda_emu
