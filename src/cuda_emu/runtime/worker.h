// The state of one thread of the CPU that runs blocks, one after the other: its block, the fibers that carry the
// block's threads, and its shared memory.
#ifndef CUDA_EMU_WORKER_H_
#define CUDA_EMU_WORKER_H_

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <random>
#include <vector>

#include "../include/cuda_emu/launch.h"
#include "../include/cuda_emu/synchronize.h"

namespace cuda_emu {

constexpr unsigned kMaxThreads = 1024;  // of a block
constexpr unsigned kWarpSize = 32, kMaxWarps = kMaxThreads / kWarpSize;
constexpr size_t kStaticSharedBytes = 48 << 10;  // what a block gets without asking
constexpr size_t kMostSharedBytes = 227 << 10;   // and with cudaFuncSetAttribute (compute capability 9.0)
constexpr size_t kSharedArenaBytes = 512 << 10;  // room for these, and for canaries between them
constexpr size_t kSignalStackBytes = 64 << 10;

/// Why a fiber does not run.
enum class Parked : uint8_t { kNo, kAtBarrier, kInWarp, kReady };

/// A stack.  It carries one thread that has started and not ended, or waits for the next one.
struct Fiber {
  void* sp;
  char* stack;
  size_t stack_bytes;
  uint3 thread;
  unsigned linear;  // number of the thread in its block
  Parked parked;
  Site site;  // where it waits
  Fiber* next;
  uint64_t result;  // of the warp collective that it waited for
};

struct FiberQueue {
  Fiber *head = nullptr, *tail = nullptr;

  void Push(Fiber* fiber) {
    fiber->next = nullptr;
    (tail == nullptr ? head : tail->next) = fiber;
    tail = fiber;
  }
  Fiber* Pop() {
    Fiber* fiber = head;
    if (fiber != nullptr && (head = fiber->next) == nullptr) tail = nullptr;
    return fiber;
  }
  void Append(FiberQueue& other) {
    if (other.head == nullptr) return;
    (tail == nullptr ? head : tail->next) = other.head;
    tail = other.tail;
    other = FiberQueue();
  }
};

/// Lanes of one warp that have met, or will, in one collective.
struct Meeting {
  bool used;
  unsigned mask, arrived;
  Site site;
  WarpOperation what;
  uint64_t value[kWarpSize];
  int source[kWarpSize];
  Fiber* fiber[kWarpSize];
};

struct Warp {
  Meeting meetings[16];  // as many masks may be met at once: tiles of two lanes
};

struct Block {
  ThreadQueue queue;
  uint32_t linear;
  unsigned started;  // threads that have started and not ended
  uint32_t epoch;    // how many barriers are over

  unsigned arrived;  // at the barrier
  FiberQueue waiting;
  Site barrier;
  bool barriers_differ;
  int count, all, any;  // of the predicates at the barrier
  int results[3];       // those of the last barrier, by BarrierResult

  Warp warps[kMaxWarps];
  uint16_t warp_epochs[kMaxWarps];  // how many collectives of each warp are over; together, as each block clears them

  /// Threads that have not ended.
  unsigned Unfinished() const { return queue.size - queue.next + started; }
};

struct SharedVariable {
  const SharedShape* shape;
  const char *name, *declaration;
  char* address;

  size_t bytes() const { return shape->bytes; }
};

struct Worker {
  Block block;
  const Grid* grid;
  bool failed;

  void* scheduler_sp;
  Fiber* running;
  FiberQueue ready;
  Fiber* free_fibers;
  Fiber fibers[kMaxThreads];
  unsigned n_fibers;
  char *stacks_begin, *stacks_end;
  std::vector<uint16_t> order;
  std::minstd_rand random;

  char *shared_begin, *shared_end;  // static variables from the beginning; dynamic memory ends at the end
  char* dynamic_shared;
  SharedVariable variables[32];
  unsigned n_variables;
  size_t static_bytes;

  pthread_t thread;
  char* signal_stack;
  std::atomic<long> started_ms;  // 0: not at work
  std::atomic<bool> in_kernel;
  volatile bool timed_out;
};

#if defined(__APPLE__)
extern __thread Worker* this_worker;
#else
extern __thread Worker* this_worker __attribute__((tls_model("initial-exec")));
#endif
extern const Grid* running_grid;
extern std::atomic<uint32_t> launch_number;

inline bool InKernel() {
  return this_worker != nullptr && this_worker->in_kernel;
}

Worker* NewWorker();

/// Undo what cudaFuncSetAttribute has allowed.
void ForgetAttributes();

/// Run the block of this number, on the worker of this thread.
void RunBlock(uint32_t linear, uint3 index);

}  // namespace cuda_emu

#endif  // CUDA_EMU_WORKER_H_
