// The functions that CUDA adds to <math.h>: intrinsics, bit operations, conversions, reads through the texture cache.
// Intrinsics are as exact here as the plain functions; on a GPU the fast ones (__expf, ...) are not.
#ifndef CUDA_EMU_MATHS_H_
#define CUDA_EMU_MATHS_H_

#include <math.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

// ---- min and max: of integers of one size, signed or not, and of floats and doubles.  CUDA has no others either.

namespace cuda_emu {
template <class A, class B>
constexpr bool kAlike = (std::is_integral_v<A> && std::is_integral_v<B> && sizeof(A) == sizeof(B)) ||
                        (std::is_floating_point_v<A> && std::is_floating_point_v<B>);
}  // namespace cuda_emu

template <class A, class B, class = std::enable_if_t<::cuda_emu::kAlike<A, B>>>
constexpr std::common_type_t<A, B> min(A a, B b) {
  using C = std::common_type_t<A, B>;
  return static_cast<C>(b) < static_cast<C>(a) ? static_cast<C>(b) : static_cast<C>(a);
}
template <class A, class B, class = std::enable_if_t<::cuda_emu::kAlike<A, B>>>
constexpr std::common_type_t<A, B> max(A a, B b) {
  using C = std::common_type_t<A, B>;
  return static_cast<C>(a) < static_cast<C>(b) ? static_cast<C>(b) : static_cast<C>(a);
}

// clang-format off: tables read best with one function a line

// ---- floating point

inline float __expf(float x) { return expf(x); }
inline float __exp10f(float x) { return powf(10.0f, x); }
inline float __logf(float x) { return logf(x); }
inline float __log2f(float x) { return log2f(x); }
inline float __log10f(float x) { return log10f(x); }
inline float __powf(float x, float y) { return powf(x, y); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __tanf(float x) { return tanf(x); }
inline void __sincosf(float x, float* s, float* c) { *s = sinf(x), *c = cosf(x); }
inline float __tanhf(float x) { return tanhf(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float fdividef(float x, float y) { return x / y; }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fsqrt_rn(float x) { return sqrtf(x); }
inline float __frsqrt_rn(float x) { return 1.0f / sqrtf(x); }
inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float rcbrtf(float x) { return 1.0f / cbrtf(x); }
inline double rcbrt(double x) { return 1.0 / cbrt(x); }
inline float normcdff(float x) { return 0.5f * erfcf(-x * 0.70710678118654752f); }
inline double normcdf(double x) { return 0.5 * erfc(-x * 0.70710678118654752); }
inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f; }
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fsub_rn(float x, float y) { return x - y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
inline double __dadd_rn(double x, double y) { return x + y; }
inline double __dmul_rn(double x, double y) { return x * y; }
inline double __ddiv_rn(double x, double y) { return x / y; }
inline double __fma_rn(double x, double y, double z) { return fma(x, y, z); }

// ---- conversions: to nearest even (rn), towards zero (rz), down (rd), up (ru)

inline int __float2int_rn(float x) { return static_cast<int>(rintf(x)); }
inline int __float2int_rz(float x) { return static_cast<int>(x); }
inline int __float2int_rd(float x) { return static_cast<int>(floorf(x)); }
inline int __float2int_ru(float x) { return static_cast<int>(ceilf(x)); }
inline unsigned __float2uint_rn(float x) { return static_cast<unsigned>(rintf(x)); }
inline unsigned __float2uint_rz(float x) { return static_cast<unsigned>(x); }
inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline float __uint2float_rn(unsigned x) { return static_cast<float>(x); }
inline int __double2int_rn(double x) { return static_cast<int>(rint(x)); }
inline int __double2int_rz(double x) { return static_cast<int>(x); }
inline float __double2float_rn(double x) { return static_cast<float>(x); }

namespace cuda_emu {
template <class To, class From>
inline To BitCast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof(To));
  return to;
}
}  // namespace cuda_emu

inline int __float_as_int(float x) { return ::cuda_emu::BitCast<int>(x); }
inline float __int_as_float(int x) { return ::cuda_emu::BitCast<float>(x); }
inline unsigned __float_as_uint(float x) { return ::cuda_emu::BitCast<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return ::cuda_emu::BitCast<float>(x); }
inline long long __double_as_longlong(double x) { return ::cuda_emu::BitCast<long long>(x); }
inline double __longlong_as_double(long long x) { return ::cuda_emu::BitCast<double>(x); }

// ---- integers

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned>(x)) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll(static_cast<unsigned long long>(x)) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline int __mul24(int x, int y) { return x * y; }
inline unsigned __umul24(unsigned x, unsigned y) { return x * y; }
inline int __mulhi(int x, int y) { return static_cast<int>((static_cast<int64_t>(x) * y) >> 32); }
inline unsigned __umulhi(unsigned x, unsigned y) { return static_cast<unsigned>((uint64_t{x} * y) >> 32); }
inline unsigned __brev(unsigned x) {
  unsigned reversed = 0;
  for (int bit = 0; bit < 32; bit++) reversed |= (x >> bit & 1u) << (31 - bit);
  return reversed;
}

// ---- loads and stores that hint at a cache: plain here

template <class T>
inline T __ldg(const T* address) { return *address; }
template <class T>
inline T __ldcg(const T* address) { return *address; }
template <class T>
inline T __ldcs(const T* address) { return *address; }
template <class T>
inline void __stcg(T* address, T value) { *address = value; }
template <class T>
inline void __stcs(T* address, T value) { *address = value; }

// clang-format on

// ---- clocks: nanoseconds of the CPU, not cycles of a GPU

inline long long clock64() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

#endif  // CUDA_EMU_MATHS_H_
