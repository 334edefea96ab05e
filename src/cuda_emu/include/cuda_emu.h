#pragma once
#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#define __CUDA_EMU__ 1

// ---------------------------------------------------------------- keywords
#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __grid_constant__
#ifndef CUDA_EMU_REWRITTEN
// Without the source rewriter shared memory is one thread_local object per worker:
// it works, but there is no checking and no extern __shared__.
#define __shared__ static thread_local
#endif

// ------------------------------------------------------------ vector types
struct uint3 { unsigned x, y, z; };
struct int3 { int x, y, z; };
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
};
struct alignas(8) float2 { float x, y; };
struct float3 { float x, y, z; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(8) int2 { int x, y; };
struct alignas(16) int4 { int x, y, z, w; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(16) double2 { double x, y; };
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline int2 make_int2(int x, int y) { return {x, y}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }

// ------------------------------------------------- built-in kernel variables
#if defined(__APPLE__)
#define CUDA_EMU_TLS extern __thread
#else
#define CUDA_EMU_TLS extern __thread __attribute__((tls_model("initial-exec"), visibility("default")))
#endif
CUDA_EMU_TLS uint3 threadIdx;
CUDA_EMU_TLS uint3 blockIdx;
CUDA_EMU_TLS dim3 blockDim;
CUDA_EMU_TLS dim3 gridDim;
static constexpr int warpSize = 32;

// ----------------------------------------------------------------- errors
enum cudaError {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorInvalidSymbol = 13,
  cudaErrorInvalidMemcpyDirection = 21,
  cudaErrorInsufficientDriver = 35,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorIllegalAddress = 700,
  cudaErrorLaunchOutOfResources = 701,
  cudaErrorLaunchTimeout = 702,
  cudaErrorAssert = 710,
  cudaErrorMisalignedAddress = 716,
  cudaErrorLaunchFailure = 719,
  cudaErrorUnknown = 999,
};
typedef enum cudaError cudaError_t;
enum cudaMemcpyKind {
  cudaMemcpyHostToHost = 0, cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3, cudaMemcpyDefault = 4
};
struct CUstream_st; typedef CUstream_st* cudaStream_t;
struct CUevent_st; typedef CUevent_st* cudaEvent_t;
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
struct cudaDeviceProp {
  char name[256]; size_t totalGlobalMem, sharedMemPerBlock, sharedMemPerBlockOptin;
  int warpSize, maxThreadsPerBlock, multiProcessorCount, major, minor, regsPerBlock;
  int maxThreadsDim[3], maxGridSize[3];
};

extern "C" {
const char* cudaGetErrorString(cudaError_t);
const char* cudaGetErrorName(cudaError_t);
cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaDeviceReset();
cudaError_t cudaGetDeviceCount(int*);
cudaError_t cudaGetDevice(int*);
cudaError_t cudaSetDevice(int);
cudaError_t cudaMemGetInfo(size_t*, size_t*);
cudaError_t cudaFree(void*);
cudaError_t cudaMemcpy(void*, const void*, size_t, cudaMemcpyKind);
cudaError_t cudaMemset(void*, int, size_t);
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp*, int);
inline cudaError_t cudaMemcpyAsync(void* d, const void* s, size_t n, cudaMemcpyKind k, cudaStream_t = 0) { return cudaMemcpy(d, s, n, k); }
inline cudaError_t cudaMemsetAsync(void* d, int v, size_t n, cudaStream_t = 0) { return cudaMemset(d, v, n); }
inline cudaError_t cudaStreamCreate(cudaStream_t* s) { *s = (cudaStream_t)std::malloc(1); return cudaSuccess; }
inline cudaError_t cudaStreamDestroy(cudaStream_t s) { std::free(s); return cudaSuccess; }
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaDeviceSynchronize(); }
cudaError_t cudaEventCreate(cudaEvent_t*);
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t = 0);
cudaError_t cudaEventElapsedTime(float*, cudaEvent_t, cudaEvent_t);
inline cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaEventDestroy(cudaEvent_t e) { std::free((void*)e); return cudaSuccess; }

namespace cuda_emu {
cudaError_t malloc_device(void** p, size_t n);
cudaError_t set_max_dyn_smem(const void* fn, int value);
cudaError_t to_symbol(void* sym, size_t symsize, const void* src, size_t n, size_t off);
}
template <class T> inline cudaError_t cudaMalloc(T** p, size_t n) { return cuda_emu::malloc_device((void**)p, n); }
template <class T> inline cudaError_t cudaMallocManaged(T** p, size_t n) { *p = (T*)std::malloc(n); return *p ? cudaSuccess : cudaErrorMemoryAllocation; }
template <class T> inline cudaError_t cudaMallocHost(T** p, size_t n) { *p = (T*)std::malloc(n); return *p ? cudaSuccess : cudaErrorMemoryAllocation; }
inline cudaError_t cudaFreeHost(void* p) { std::free(p); return cudaSuccess; }
template <class F> inline cudaError_t cudaFuncSetAttribute(F* f, cudaFuncAttribute, int v) { return cuda_emu::set_max_dyn_smem((const void*)f, v); }
template <class T> inline cudaError_t cudaMemcpyToSymbol(T& sym, const void* src, size_t n, size_t off = 0, cudaMemcpyKind = cudaMemcpyHostToDevice) {
  return cuda_emu::to_symbol((void*)&sym, sizeof(T), src, n, off);
}
template <class T> inline cudaError_t cudaMemcpyFromSymbol(void* dst, const T& sym, size_t n, size_t off = 0, cudaMemcpyKind = cudaMemcpyDeviceToHost) {
  std::memcpy(dst, (const char*)&sym + off, n); return cudaSuccess;
}

// ----------------------------------------------------------- launch machinery
#if defined(__SANITIZE_THREAD__)
#define CUDA_EMU_NOSAN __attribute__((no_sanitize("thread")))
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define CUDA_EMU_NOSAN __attribute__((no_sanitize("thread")))
#endif
#endif
#ifndef CUDA_EMU_NOSAN
#define CUDA_EMU_NOSAN
#endif
#ifdef CUDA_EMU_CHECK
#define CUDA_EMU_ATOMIC(p) ::cuda_emu::note_atomic((const void*)(p), sizeof(*(p)))
#else
#define CUDA_EMU_ATOMIC(p) ((void)0)
#endif

namespace cuda_emu {

struct Site { const char* file; int line; const char* what; };   // where a barrier / collective was called

struct BlockState {          // the part of a running block that inlined code touches
  unsigned next;             // next thread that has not started yet
  unsigned nthreads;
  const uint16_t* order;     // null: threads start as 0, 1, 2, ...
  bool single;               // one thread per stack (for the real ThreadSanitizer)
};

struct LaunchCfg {
  const char* kernel; const char* file; int line;
  dim3 grid, block; size_t smem; cudaStream_t stream;
};

using LoopFn = void (*)(BlockState*, const void* body);
void run_grid(const LaunchCfg&, LoopFn, const void* body, const void* args, size_t nargs);
void* dynamic_shared();
void* static_shared(const void* key, size_t bytes, const char* decl);
void barrier(const Site&);
int barrier_reduce(const Site&, int pred, int op);
enum { OP_SHFL, OP_BALLOT, OP_SYNC };
uint64_t warp_collective(const Site&, unsigned mask, uint64_t value, int srclane, int op);
unsigned lane_id();
unsigned active_mask();
void yield_thread();
void fence();
void note_lock();
void note_atomic(const void*, size_t);

CUDA_EMU_NOSAN inline void set_thread(unsigned t) {
  const unsigned bx = blockDim.x, by = blockDim.y;
  threadIdx.x = t % bx; t /= bx; threadIdx.y = t % by; threadIdx.z = t / by;
}

template <class Body> CUDA_EMU_NOSAN __attribute__((noinline)) void run_one(const Body& body) { body(); }

// Runs threads of the current block one after another on the current stack.
// A thread that must wait (barrier, warp shuffle) parks this stack, and the
// scheduler goes on with the next thread on a fresh stack: kernels that never
// synchronise are a plain loop, others become fibers, and nothing has to be
// known beforehand.
template <class Body> CUDA_EMU_NOSAN void thread_loop(BlockState* b, const void* p) {
  const Body& body = *static_cast<const Body*>(p);
  if (b->order) {
    for (unsigned t; (t = b->next) < b->nthreads;) { b->next = t + 1; set_thread(b->order[t]); run_one(body); if (b->single) return; }
  } else if (blockDim.y * blockDim.z == 1) {
    for (unsigned t; (t = b->next) < b->nthreads;) { b->next = t + 1; threadIdx.x = t; body(); }
  } else {
    for (unsigned t; (t = b->next) < b->nthreads;) { b->next = t + 1; set_thread(t); run_one(body); }
  }
}

template <class Fn> struct Launcher {
  LaunchCfg cfg; Fn fn;
  template <class... A> void operator()(A&&... a) const {
    static_assert((std::is_trivially_copyable_v<std::decay_t<A>> && ...),
                  "CUDA kernel arguments are copied byte by byte to the GPU: pass pointers, numbers and plain "
                  "structs, not std::vector, std::string or the like");
    std::tuple<std::decay_t<A>...> args(std::forward<A>(a)...);
    auto body = [&args, f = fn]() { std::apply(f, args); };
    run_grid(cfg, &thread_loop<decltype(body)>, &body, &args, sizeof(args));
  }
};
template <class Fn> Launcher<Fn> launch_at(const char* kernel, const char* file, int line, Fn fn, dim3 grid, dim3 block,
                                           size_t smem = 0, cudaStream_t stream = 0) {
  return {{kernel, file, line, grid, block, smem, stream}, fn};
}
template <class S> inline S& shared(const char* decl) {
  static const char key = 0;
  return *static_cast<S*>(static_shared(&key, sizeof(S), decl));
}
}  // namespace cuda_emu

// The rewriter turns  k<T><<<grid, block, ...>>>(args)  into  CUDA_EMU_LAUNCH((k<T>), grid, block, ...)(args)
#define CUDA_EMU_UNPAREN(...) __VA_ARGS__
#define CUDA_EMU_LAUNCH(k, ...)                                                   \
  ::cuda_emu::launch_at(#k, __FILE__, __LINE__,                                   \
                     [&](auto&... cuda_emu_a) { CUDA_EMU_UNPAREN k(cuda_emu_a...); }, __VA_ARGS__)

// ------------------------------------------------------------ synchronisation
#define CUDA_EMU_SITE const char* file = __builtin_FILE(), int line = __builtin_LINE()
inline void __syncthreads(CUDA_EMU_SITE) { ::cuda_emu::barrier({file, line, "__syncthreads()"}); }
inline int __syncthreads_count(int p, CUDA_EMU_SITE) { return ::cuda_emu::barrier_reduce({file, line, "__syncthreads_count()"}, p, 0); }
inline int __syncthreads_and(int p, CUDA_EMU_SITE) { return ::cuda_emu::barrier_reduce({file, line, "__syncthreads_and()"}, p, 1); }
inline int __syncthreads_or(int p, CUDA_EMU_SITE) { return ::cuda_emu::barrier_reduce({file, line, "__syncthreads_or()"}, p, 2); }
inline void __syncwarp(unsigned mask = 0xffffffffu, CUDA_EMU_SITE) { ::cuda_emu::warp_collective({file, line, "__syncwarp()"}, mask, 0, 0, ::cuda_emu::OP_SYNC); }
inline void __threadfence() { ::cuda_emu::fence(); }
inline void __threadfence_block() {}
inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline unsigned __activemask() { return ::cuda_emu::active_mask(); }

namespace cuda_emu {
template <class T> inline T shfl(const Site& s, unsigned mask, T v, int src) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>, "warp shuffles take 4- and 8-byte values");
  uint64_t u = 0; std::memcpy(&u, &v, sizeof(T));
  u = warp_collective(s, mask, u, src, OP_SHFL);
  std::memcpy(&v, &u, sizeof(T)); return v;
}
}
template <class T> inline T __shfl_sync(unsigned mask, T v, int src, int width = 32, CUDA_EMU_SITE) {
  int l = ::cuda_emu::lane_id(), base = l & ~(width - 1);
  return ::cuda_emu::shfl({file, line, "__shfl_sync()"}, mask, v, base + (src & (width - 1)));
}
template <class T> inline T __shfl_down_sync(unsigned mask, T v, unsigned d, int width = 32, CUDA_EMU_SITE) {
  int l = ::cuda_emu::lane_id(), in = l & (width - 1);
  return ::cuda_emu::shfl({file, line, "__shfl_down_sync()"}, mask, v, in + (int)d < width ? l + (int)d : l);
}
template <class T> inline T __shfl_up_sync(unsigned mask, T v, unsigned d, int width = 32, CUDA_EMU_SITE) {
  int l = ::cuda_emu::lane_id(), in = l & (width - 1);
  return ::cuda_emu::shfl({file, line, "__shfl_up_sync()"}, mask, v, in - (int)d >= 0 ? l - (int)d : l);
}
template <class T> inline T __shfl_xor_sync(unsigned mask, T v, int x, int width = 32, CUDA_EMU_SITE) {
  int l = ::cuda_emu::lane_id(), o = l ^ x;
  return ::cuda_emu::shfl({file, line, "__shfl_xor_sync()"}, mask, v, (o & ~(width - 1)) <= (l & ~(width - 1)) ? o : l);
}
inline unsigned __ballot_sync(unsigned mask, int p, CUDA_EMU_SITE) { return (unsigned)::cuda_emu::warp_collective({file, line, "__ballot_sync()"}, mask, p != 0, 0, ::cuda_emu::OP_BALLOT); }
inline int __any_sync(unsigned mask, int p, CUDA_EMU_SITE) { return ::cuda_emu::warp_collective({file, line, "__any_sync()"}, mask, p != 0, 0, ::cuda_emu::OP_BALLOT) != 0; }
inline int __all_sync(unsigned mask, int p, CUDA_EMU_SITE) { return ::cuda_emu::warp_collective({file, line, "__all_sync()"}, mask, p != 0, 0, ::cuda_emu::OP_BALLOT) == mask; }
#define CUDA_EMU_REDUCE(NAME, EXPR)                                                                        \
  template <class T> inline T NAME(unsigned mask, T v, CUDA_EMU_SITE) {                                    \
    T a{}; bool first = true;                                                                           \
    for (int i = 0; i < 32; i++) if (mask >> i & 1) { T b = ::cuda_emu::shfl({file, line, #NAME "()"}, mask, v, i); \
      a = first ? b : (EXPR); first = false; }                                                          \
    return a; }
CUDA_EMU_REDUCE(__reduce_add_sync, a + b)
CUDA_EMU_REDUCE(__reduce_min_sync, b < a ? b : a)
CUDA_EMU_REDUCE(__reduce_max_sync, b > a ? b : a)
#undef CUDA_EMU_REDUCE

// A failed assert in a kernel ends the launch, not the process.  In the header, so that each module has its own: the C
// library's would be found first otherwise.
namespace cuda_emu { void device_assert(const char* expression, const char* file, unsigned line); }
extern "C" inline __attribute__((visibility("hidden"), noreturn)) void __assert_fail(const char* e, const char* f, unsigned l, const char* fn) noexcept(true) {
  ::cuda_emu::device_assert(e, f, l);      // leaves the kernel for good, if it is one
  std::fprintf(stderr, "%s:%u: %s: Assertion `%s' failed.\n", f, l, fn, e);
  std::abort();
}

// -------------------------------------------------------------------- atomics
namespace cuda_emu {
template <class T> struct bits { using type = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>; };
template <class T, class F> CUDA_EMU_NOSAN inline T rmw(T* p, F f) {
  CUDA_EMU_ATOMIC(p);
  using U = typename bits<T>::type; U* q = reinterpret_cast<U*>(p);
  U old = __atomic_load_n(q, __ATOMIC_RELAXED), neu; T o;
  do { std::memcpy(&o, &old, sizeof(T)); T n = f(o); std::memcpy(&neu, &n, sizeof(T)); }
  while (!__atomic_compare_exchange_n(q, &old, neu, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return o;
}
template <class T> using id_t = typename std::enable_if<true, T>::type;   // no deduction
}
template <class T> inline T atomicAdd(T* p, ::cuda_emu::id_t<T> v) { return ::cuda_emu::rmw(p, [v](T o) { return (T)(o + v); }); }
template <class T> inline T atomicSub(T* p, ::cuda_emu::id_t<T> v) { return ::cuda_emu::rmw(p, [v](T o) { return (T)(o - v); }); }
template <class T> inline T atomicMax(T* p, ::cuda_emu::id_t<T> v) { return ::cuda_emu::rmw(p, [v](T o) { return o < v ? v : o; }); }
template <class T> inline T atomicMin(T* p, ::cuda_emu::id_t<T> v) { return ::cuda_emu::rmw(p, [v](T o) { return v < o ? v : o; }); }
template <class T> inline T atomicAnd(T* p, ::cuda_emu::id_t<T> v) { return ::cuda_emu::rmw(p, [v](T o) { return (T)(o & v); }); }
template <class T> inline T atomicOr(T* p, ::cuda_emu::id_t<T> v) { return ::cuda_emu::rmw(p, [v](T o) { return (T)(o | v); }); }
template <class T> inline T atomicXor(T* p, ::cuda_emu::id_t<T> v) { return ::cuda_emu::rmw(p, [v](T o) { return (T)(o ^ v); }); }
inline unsigned atomicInc(unsigned* p, unsigned v) { return ::cuda_emu::rmw(p, [v](unsigned o) { return o >= v ? 0u : o + 1; }); }
inline unsigned atomicDec(unsigned* p, unsigned v) { return ::cuda_emu::rmw(p, [v](unsigned o) { return (o == 0 || o > v) ? v : o - 1; }); }
template <class T> inline T atomicExch(T* p, ::cuda_emu::id_t<T> v) { T o = ::cuda_emu::rmw(p, [v](T) { return v; }); ::cuda_emu::yield_thread(); return o; }
template <class T> inline T atomicCAS(T* p, ::cuda_emu::id_t<T> c, ::cuda_emu::id_t<T> v) {
  ::cuda_emu::note_lock();
  T o = ::cuda_emu::rmw(p, [c, v](T o) { return o == c ? v : o; });
  if (!(o == c)) ::cuda_emu::yield_thread();      // a spin lock must let the holder run
  return o;
}

// ----------------------------------------------------------------------- maths
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float __powf(float x, float y) { return std::pow(x, y); }
inline float __sinf(float x) { return std::sin(x); }
inline float __cosf(float x) { return std::cos(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __frcp_rn(float x) { return 1.f / x; }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline float __saturatef(float x) { return x < 0 ? 0 : x > 1 ? 1 : x; }
inline float rsqrtf(float x) { return 1.f / std::sqrt(x); }
inline double rsqrt(double x) { return 1. / std::sqrt(x); }
template <class T> inline T __ldg(const T* p) { return *p; }
inline int __float_as_int(float f) { int i; std::memcpy(&i, &f, 4); return i; }
inline float __int_as_float(int i) { float f; std::memcpy(&f, &i, 4); return f; }
inline unsigned __float_as_uint(float f) { unsigned i; std::memcpy(&i, &f, 4); return i; }
inline float __uint_as_float(unsigned i) { float f; std::memcpy(&f, &i, 4); return f; }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
inline int __ffs(int x) { return __builtin_ffs(x); }
template <class A, class B, class = std::enable_if_t<std::is_arithmetic_v<A> && std::is_arithmetic_v<B>>>
constexpr std::common_type_t<A, B> min(A a, B b) { using C = std::common_type_t<A, B>; return (C)b < (C)a ? (C)b : (C)a; }
template <class A, class B, class = std::enable_if_t<std::is_arithmetic_v<A> && std::is_arithmetic_v<B>>>
constexpr std::common_type_t<A, B> max(A a, B b) { using C = std::common_type_t<A, B>; return (C)a < (C)b ? (C)b : (C)a; }
inline long long clock64() { return 0; }
