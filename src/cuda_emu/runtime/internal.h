#pragma once
#include "cuda_emu.h"
#include <vector>
#include <atomic>
#include <mutex>
#include <unistd.h>
#include <pthread.h>

#ifdef CUDA_EMU_ASAN                    // kernels are compiled with -fsanitize=address, this runtime is not
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef CUDA_EMU_TSAN                    // kernels are compiled with -fsanitize=thread and linked with the real libtsan
#include <sanitizer/tsan_interface.h>
extern "C" { void __tsan_acquire(void*); void __tsan_release(void*);
void* __tsan_get_current_fiber(); void* __tsan_create_fiber(unsigned); void __tsan_switch_to_fiber(void*, unsigned); void __tsan_set_fiber_name(void*, const char*); }
#endif

namespace cuda_emu {

struct Options {
  int workers = 0;          // NEEDLE_CUDA_EMU_WORKERS   (0: all cores; check build: 1)
  int order = 0;            // NEEDLE_CUDA_EMU_ORDER     forward | reverse | random
  unsigned seed = 1;        // NEEDLE_CUDA_EMU_SEED
  bool guard = true;        // NEEDLE_CUDA_EMU_GUARD     host may not touch device memory
  bool throws = true;       // NEEDLE_CUDA_EMU_STICKY=1  report like a GPU: at the next API call
  bool strict = true;       // NEEDLE_CUDA_EMU_STRICT    barrier divergence is an error
  double timeout = 20;      // NEEDLE_CUDA_EMU_TIMEOUT   seconds a kernel may run
  size_t stack = 64 << 10;  // NEEDLE_CUDA_EMU_STACK     bytes per thread
  bool races = true, uninit = true, profile = false;   // check build: NEEDLE_CUDA_EMU_RACES, NEEDLE_CUDA_EMU_UNINIT, CUEMU_PROFILE
};
extern Options opt;

struct Acc { uint32_t launch, block, bepoch, pc; uint16_t tid, wepoch; uint8_t mask, flags; };
enum { F_ATOMIC = 1 };
struct Cell { Acc w, r, r2; };          // last write, and the last reads by two different threads

struct Alloc {
  char* base; size_t size; size_t page, npages;   // user range, and pages in the arena
  bool live; std::atomic<bool> open;
  Cell* cells; uint8_t* init;                     // check build
  unsigned serial;
};
extern char *dev_lo, *dev_hi;
Alloc* find_alloc(const void* p);                 // live or freed allocation owning this page, or null
std::string describe_device(const void* p, size_t n);

enum Park : uint8_t { P_NONE, P_BARRIER, P_WARP, P_READY };
struct Fiber {
  void* sp; char* lo; size_t size;
  uint3 tid; unsigned lin;
  Park park; Site site; Fiber* next;
  uint64_t result;
  void* tsan; void* fake;
};
struct WarpOp { unsigned mask, arrived; Site site; int op; uint64_t val[32]; int src[32]; Fiber* who[32]; bool used; };
struct Warp { WarpOp ops[4]; uint16_t epoch; };
struct SharedVar { const void* key; char* p; size_t n; const char* decl; };

struct Block : BlockState {
  uint3 idx; unsigned lin;
  unsigned in_use;                 // fibers that carry an unfinished thread
  unsigned arrived; Fiber *bar_head, *bar_tail; Site bar_site; bool bar_mixed;
  int red[3];                      // barrier reductions: sum, and, or
  int red_out[3];
  uint32_t epoch;
  Warp warp[32];
};

struct Worker {
  Block b;
  const LaunchCfg* cfg; LoopFn loop; const void* body; const char* args; size_t nargs;
  void* main_sp; Fiber* cur; Fiber *ready_head, *ready_tail; Fiber* free_list;
  std::vector<Fiber*> all;
  std::vector<uint16_t> order;
  char* sh_lo; char* sh_hi;        // shared memory arena of this worker; dynamic part ends at sh_hi
  char* dyn; SharedVar vars[24]; int nvars; size_t static_used;
  char* st_lo; char* st_hi; unsigned nstacks;      // fiber stacks
  bool failed; pthread_t thread; std::atomic<long> started_ms; std::atomic<bool> in_kernel;
  void* tsan_main; void* fake_main; const void* main_stack; size_t main_stack_size;
  char* sigstack;
  bool busy;                       // the runtime itself is at work: do not check its own loads and stores
};
extern __thread Worker* W;
extern std::atomic<uint32_t> launch_no;
extern bool fenced, locked;        // the running kernel has used __threadfence / atomicCAS

// Both note the first error of a launch.  %1 in msg stands for the source line of pc2.  fail() also leaves the
// kernel for good; use FAIL, so that building the message is not checked by our own hooks.
[[noreturn]] void fail(cudaError_t, const std::string& msg, const void* pc = nullptr);
void report(cudaError_t, const std::string& msg, const void* pc, const void* pc2 = nullptr);
#define FAIL(...) do { if (::cuda_emu::W) ::cuda_emu::W->busy = true; ::cuda_emu::fail(__VA_ARGS__); } while (0)
std::string where(const void* pc);
std::string thread_name(const uint3& t);
std::string thread_name(unsigned lin);
// hooks that the check build fills in
extern void (*on_alloc)(Alloc&);
extern void (*on_free)(Alloc&);
extern void (*on_host_write)(Alloc&, size_t off, size_t n);
extern void (*on_copy)(Alloc& d, size_t doff, Alloc& s, size_t soff, size_t n);
extern void (*on_launch_start)(const void* in_module);
extern void (*on_block_start)();
extern void (*on_block_end)();
extern void (*on_launch_end)(const LaunchCfg&);
}
extern "C" void cuda_emu_switch(void** save, void* to);
