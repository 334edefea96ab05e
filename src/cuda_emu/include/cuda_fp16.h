// Half precision: 1 sign bit, 5 bits of exponent, 10 bits of fraction (IEEE 754 binary16).  Arithmetic is done in float
// and rounded once to half, which gives the right result for +, -, *, / and sqrt: float has more than twice the digits.
#ifndef CUDA_EMU_CUDA_FP16_H_
#define CUDA_EMU_CUDA_FP16_H_

#include <cstdint>

#include "cuda_emu.h"

namespace cuda_emu {

/// The nearest half, ties to even.  Past 65504: infinity.
inline uint16_t FloatToHalfBits(float value) {
  const uint32_t bits = BitCast<uint32_t>(value), sign = bits >> 16 & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | (magnitude >> 13 & 0x1ffu));  // NaN
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // 65520 and more round to infinity
  if (magnitude < 0x38800000u) {  // below 2^-14 the halves are the multiples of 2^-24: let the adder round to one
    const float shifted = BitCast<float>(magnitude) + 0.5f;  // 0.5 has the spacing 2^-24
    return static_cast<uint16_t>(sign | (BitCast<uint32_t>(shifted) - BitCast<uint32_t>(0.5f)));
  }
  const uint32_t odd = magnitude >> 13 & 1u;
  const uint32_t rounded = magnitude + 0xfffu + odd;  // a carry moves into the exponent, as it should
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

inline float HalfBitsToFloat(uint16_t half) {
  const uint32_t sign = (half & 0x8000u) << 16, exponent = half >> 10 & 0x1fu, fraction = half & 0x3ffu;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 5.9604644775390625e-8f;  // 2^-24
    return BitCast<float>(sign | BitCast<uint32_t>(magnitude));
  }
  if (exponent == 31) return BitCast<float>(sign | 0x7f800000u | fraction << 13);
  return BitCast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

}  // namespace cuda_emu

struct alignas(2) __half_raw {
  unsigned short x;
};

struct alignas(2) __half {
  unsigned short bits;

  __half() = default;
  __half(__half_raw raw) : bits(raw.x) {}
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  __half(T value) : bits(::cuda_emu::FloatToHalfBits(static_cast<float>(value))) {}
  operator float() const { return ::cuda_emu::HalfBitsToFloat(bits); }

  __half& operator+=(__half other) { return *this = __half(float(*this) + float(other)); }
  __half& operator-=(__half other) { return *this = __half(float(*this) - float(other)); }
  __half& operator*=(__half other) { return *this = __half(float(*this) * float(other)); }
  __half& operator/=(__half other) { return *this = __half(float(*this) / float(other)); }
};
typedef __half half;

struct alignas(4) __half2 {
  __half x, y;
};
typedef __half2 half2;

// clang-format off: tables read best with one function a line

inline __half operator+(__half a, __half b) { return a += b; }
inline __half operator-(__half a, __half b) { return a -= b; }
inline __half operator*(__half a, __half b) { return a *= b; }
inline __half operator/(__half a, __half b) { return a /= b; }
inline __half operator-(__half a) { return __half(__half_raw{static_cast<unsigned short>(a.bits ^ 0x8000u)}); }
inline bool operator==(__half a, __half b) { return float(a) == float(b); }
inline bool operator!=(__half a, __half b) { return float(a) != float(b); }
inline bool operator<(__half a, __half b) { return float(a) < float(b); }
inline bool operator<=(__half a, __half b) { return float(a) <= float(b); }
inline bool operator>(__half a, __half b) { return float(a) > float(b); }
inline bool operator>=(__half a, __half b) { return float(a) >= float(b); }

// ---- conversions

inline __half __float2half(float x) { return __half(x); }
inline __half __float2half_rn(float x) { return __half(x); }
inline __half __double2half(double x) { return __half(x); }
inline __half __int2half_rn(int x) { return __half(x); }
inline float __half2float(__half x) { return float(x); }
inline int __half2int_rn(__half x) { return __float2int_rn(float(x)); }
inline int __half2int_rz(__half x) { return __float2int_rz(float(x)); }
inline unsigned short __half_as_ushort(__half x) { return x.bits; }
inline __half __ushort_as_half(unsigned short x) { return __half(__half_raw{x}); }

// ---- arithmetic, comparisons, functions

inline __half __hadd(__half a, __half b) { return a + b; }
inline __half __hsub(__half a, __half b) { return a - b; }
inline __half __hmul(__half a, __half b) { return a * b; }
inline __half __hdiv(__half a, __half b) { return a / b; }
inline __half __hneg(__half a) { return -a; }
inline __half __habs(__half a) { return __ushort_as_half(a.bits & 0x7fffu); }
// the product of two halves is exact in double; the sum is rounded to double, and by way of float to half
inline __half __hfma(__half a, __half b, __half c) { return __half(double(a) * double(b) + double(c)); }
inline bool __heq(__half a, __half b) { return a == b; }
inline bool __hne(__half a, __half b) { return a != b; }
inline bool __hlt(__half a, __half b) { return a < b; }
inline bool __hle(__half a, __half b) { return a <= b; }
inline bool __hgt(__half a, __half b) { return a > b; }
inline bool __hge(__half a, __half b) { return a >= b; }
inline bool __hisnan(__half a) { return (a.bits & 0x7fffu) > 0x7c00u; }
inline int __hisinf(__half a) { return a.bits == 0x7c00u ? 1 : a.bits == 0xfc00u ? -1 : 0; }
inline __half __hmax(__half a, __half b) { return __half(fmaxf(a, b)); }
inline __half __hmin(__half a, __half b) { return __half(fminf(a, b)); }
inline __half hexp(__half a) { return __half(expf(a)); }
inline __half hlog(__half a) { return __half(logf(a)); }
inline __half hsqrt(__half a) { return __half(sqrtf(a)); }
inline __half hrsqrt(__half a) { return __half(rsqrtf(a)); }
inline __half hrcp(__half a) { return __half(1.0f / float(a)); }
inline __half hsin(__half a) { return __half(sinf(a)); }
inline __half hcos(__half a) { return __half(cosf(a)); }
inline __half hfloor(__half a) { return __half(floorf(a)); }
inline __half hceil(__half a) { return __half(ceilf(a)); }
inline __half htanh(__half a) { return __half(tanhf(a)); }

// ---- pairs

inline __half2 make_half2(__half x, __half y) { return {x, y}; }
inline __half2 __halves2half2(__half x, __half y) { return {x, y}; }
inline __half2 __half2half2(__half x) { return {x, x}; }
inline __half2 __float2half2_rn(float x) { return {__half(x), __half(x)}; }
inline __half2 __floats2half2_rn(float x, float y) { return {__half(x), __half(y)}; }
inline __half2 __float22half2_rn(float2 v) { return {__half(v.x), __half(v.y)}; }
inline float2 __half22float2(__half2 v) { return {float(v.x), float(v.y)}; }
inline __half __low2half(__half2 v) { return v.x; }
inline __half __high2half(__half2 v) { return v.y; }
inline float __low2float(__half2 v) { return v.x; }
inline float __high2float(__half2 v) { return v.y; }
inline __half2 __hadd2(__half2 a, __half2 b) { return {a.x + b.x, a.y + b.y}; }
inline __half2 __hsub2(__half2 a, __half2 b) { return {a.x - b.x, a.y - b.y}; }
inline __half2 __hmul2(__half2 a, __half2 b) { return {a.x * b.x, a.y * b.y}; }
inline __half2 __h2div(__half2 a, __half2 b) { return {a.x / b.x, a.y / b.y}; }
inline __half2 __hfma2(__half2 a, __half2 b, __half2 c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; }
inline __half2 __hneg2(__half2 a) { return {-a.x, -a.y}; }
inline __half2 operator+(__half2 a, __half2 b) { return __hadd2(a, b); }
inline __half2 operator-(__half2 a, __half2 b) { return __hsub2(a, b); }
inline __half2 operator*(__half2 a, __half2 b) { return __hmul2(a, b); }

// clang-format on

#endif  // CUDA_EMU_CUDA_FP16_H_
