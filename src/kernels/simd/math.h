// exp, log, tanh and what is made of them, on vectors; none is off by more than 2 units in the last place, which
// tests/unit/test_vector_kernels.py shows for numbers of all sizes.
//
// The method is the usual one: the argument is reduced exactly to a small interval (W. J. Cody and W. Waite, "Software
// manual for the elementary functions", 1980), and there a polynomial is evaluated.  The polynomials interpolate the
// function at Chebyshev nodes, with as many terms as the type has digits.
#ifndef NEEDLE_KERNELS_SIMD_MATH_H_
#define NEEDLE_KERNELS_SIMD_MATH_H_

#include <cstring>
#include <limits>
#include <type_traits>

#include "vector.h"

namespace needle {
namespace {

/// What is known about a type of floats.
template <typename T>
struct Float;

template <>
struct Float<float> {
  using Integer = int32_t;
  static constexpr int kMantissaBits = 23, kBias = 127;
  static constexpr float kLog2High = 0x1.62e4p-1f, kLog2Low = 1.4286068203094172e-6f;  // sum: log 2; high has 15 bits
  static constexpr float kLowestExp = -104, kHighestExp = 89;                          // beyond, exp is 0 or infinity
  /// (exp(r) - 1 - r) / r² for |r| <= log(2) / 2.
  static constexpr float kExp[] = {0.5000000013866818f,   0.16666666682068579f,  0.0416664609385013f,
                                   0.008333310482738777f, 0.001393409035281537f, 0.00019891479841355472f};
  /// (log((1 + s) / (1 - s)) / s - 2) / s², in powers of s², for (1 + s) / (1 - s) from √½ to √2.
  static constexpr float kLog[] = {0.6666666655220772f, 0.4000012370752643f, 0.28550609451405887f,
                                   0.23336204297658989f};
  /// (tanh(x) / x - 1) / x², in powers of x², for |x| <= 0.56.
  static constexpr float kTanh[] = {-0.3333333176255059f, 0.13333082253042368f, -0.05390334768533509f,
                                    0.021272748257222123f, -0.0065425419847878307f};
};

template <>
struct Float<double> {
  using Integer = int64_t;
  static constexpr int kMantissaBits = 52, kBias = 1023;
  static constexpr double kLog2High = 0x1.62e42feep-1, kLog2Low = 1.9082149292705878e-10;  // high has 32 bits
  static constexpr double kLowestExp = -746, kHighestExp = 710;
  static constexpr double kExp[] = {0.5,
                                    0.16666666666666671,
                                    0.04166666666666667,
                                    0.008333333333325848,
                                    0.0013888888888883543,
                                    0.00019841269875819579,
                                    2.4801587326261104e-5,
                                    2.755725413931689e-6,
                                    2.7557272742699346e-7,
                                    2.5105739219586713e-8,
                                    2.0915059884917686e-9};
  static constexpr double kLog[] = {0.66666666666666667, 0.40000000000000909, 0.28571428570784281, 0.22222222396085491,
                                    0.1818179517416958,  0.1538626498414253,  0.13268097770489084, 0.13093671486101806};
  static constexpr double kTanh[] = {-0.33333333333333332,   0.13333333333332466,    -0.05396825396714515,
                                     0.021869488480722564,   -0.0088632341048022294, 0.0035921065864719788,
                                     -0.0014556320709328041, 0.00058879202447558297, -0.00023421481867115479,
                                     8.4437195671030714e-5,  -2.0141494563083882e-5};
};

template <typename T>
struct Math : Simd<T> {
  using typename Simd<T>::Vector;
  using Simd<T>::kLanes;
  using Constants = Float<T>;
  using Integer = typename Constants::Integer;
  typedef Integer Integers __attribute__((vector_size(kVectorBytes)));
  typedef std::make_unsigned_t<Integer> Words __attribute__((vector_size(kVectorBytes)));

  static constexpr T kInfinity = std::numeric_limits<T>::infinity(), kNan = std::numeric_limits<T>::quiet_NaN();
  static constexpr Integer kMantissaBits = Constants::kMantissaBits, kBias = Constants::kBias;

  static Vector All(T value) { return Vector{} + value; }
  static Integers Bits(Vector a) { return reinterpret_cast<Integers>(a); }
  static Vector FromBits(Integers bits) { return reinterpret_cast<Vector>(bits); }

  // bits of any number, NaN too, as whole numbers that wrap around: signed overflow is undefined
  static Integers Minus(Integers a, Integers b) {
    return reinterpret_cast<Integers>(reinterpret_cast<Words>(a) - reinterpret_cast<Words>(b));
  }
  static Integers ToExponent(Integers n) {
    return reinterpret_cast<Integers>(reinterpret_cast<Words>(n) << kMantissaBits);
  }

  static Vector Abs(Vector a) { return FromBits(Bits(a) & std::numeric_limits<Integer>::max()); }
  /// |a| with the sign of b.
  static Vector CopySign(Vector a, Vector b) {
    constexpr Integer sign = std::numeric_limits<Integer>::min();
    return FromBits((Bits(a) & ~sign) | (Bits(b) & sign));
  }

  /// c[0] + c[1] x + c[2] x² + …
  template <int kTerms>
  static Vector Polynomial(Vector x, const T (&c)[kTerms]) {
    Vector sum = All(c[kTerms - 1]);
#pragma GCC unroll 16
    for (int i = kTerms - 2; i >= 0; i--) sum = sum * x + c[i];
    return sum;
  }

  /// 2 to the power of n, for the exponents of normal numbers.
  static Vector PowerOf2(Integers n) { return FromBits(ToExponent(n + kBias)); }

  /// Error below 1 unit in the last place, for denormal results too: with a = n log 2 + r, exp(a) = 2ⁿ exp(r).
  static Vector Exp(Vector a) {
    constexpr T log2e = T(1.4426950408889634);
    constexpr T shift = T(3) * (Integer(1) << (kMantissaBits - 1));  // a number so large has no digits after the point
    a = a < Constants::kLowestExp ? All(Constants::kLowestExp) : a;
    a = a > Constants::kHighestExp ? All(Constants::kHighestExp) : a;
    const Vector shifted = a * log2e + shift, n = shifted - shift;
    const Vector r = (a - n * Constants::kLog2High) - n * Constants::kLog2Low;
    const Vector grown = 1 + (r + r * r * Polynomial(r, Constants::kExp));
    const Integers exponent = Minus(Bits(shifted), Bits(All(shift))), half = exponent >> 1;
    return (grown * PowerOf2(half)) * PowerOf2(exponent - half);  // in two steps: 2ⁿ itself may be no normal number
  }

  /// 1 - 2 / (exp(2|a|) + 1) with a's sign, and near 0, where that would cancel, a polynomial.  Error below 2 units in
  /// the last place.
  static Vector Tanh(Vector a) {
    const Vector size = Abs(a), a2 = a * a;
    const Vector far = 1 - 2 / (Exp(2 * size) + 1);
    const Vector near = size + size * a2 * Polynomial(a2, Constants::kTanh);
    return CopySign(size < T(0.55) ? near : far, a);
  }

  /// With a = 2ᵏ (1 + f) and s = f / (2 + f): log a = k log 2 + f - (f²/2 - s (f²/2 + R(s²))).  Error below 1 unit in
  /// the last place.  (The arrangement is that of K. C. Ng in FDLIBM, 1993.)
  static Vector Log(Vector a) {
    constexpr T root_half = T(0.70710678118654752), scale = T(Integer(1) << kMantissaBits);
    const Integers tiny = a < std::numeric_limits<T>::min();  // denormals, and what has no logarithm
    const Vector normal = tiny ? a * scale : a;
    // so shifted, the exponent's bits count up where the mantissa passes √½
    const Integers bits = Minus(Bits(normal), Bits(All(root_half)));
    const Integers k = bits >> kMantissaBits;
    const Vector f = FromBits(Minus(Bits(normal), ToExponent(k))) - 1;
    const Vector exponent = __builtin_convertvector(k - (tiny & kMantissaBits), Vector);
    const Vector s = f / (2 + f), s2 = s * s, half = T(0.5) * f * f;
    const Vector rest = s * (half + s2 * Polynomial(s2, Constants::kLog)) + exponent * Constants::kLog2Low;
    const Vector finite = exponent * Constants::kLog2High - ((half - rest) - f);
    const Vector real = a < kInfinity ? finite : a;  // infinity and NaN stay what they are
    return a > 0 ? real : a == 0 ? All(-kInfinity) : a < 0 ? All(kNan) : a;
  }

  /// 1 / (1 + exp(-a)), by exp of what is never above 0: small, but not 0, where a is far below.  Error below 2 units
  /// in the last place: 1 from exp, ½ from the division, ½ from the correction, which takes back what 1 + small lost.
  static Vector Sigmoid(Vector a) {
    const Vector small = Exp(-Abs(a)), sum = 1 + small, lost = small - (sum - 1);  // exactly (T. J. Dekker, 1971)
    const Vector rounded = (a < 0 ? small : All(1)) / sum, other = 1 - rounded;
    return rounded - rounded * lost * (a < 0 ? other : rounded);  // with 1 / sum, which is one of the two
  }
};

}  // namespace
}  // namespace needle

#endif  // NEEDLE_KERNELS_SIMD_MATH_H_
