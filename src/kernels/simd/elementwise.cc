// Arithmetic, comparisons and functions of single elements, on vectors.
#include "../float_loops.h"
#include "loops.h"

namespace needle {
namespace {

template <typename T>
struct Formulas : Loops<T> {
  using typename Simd<T>::Vector;
  using Simd<T>::kLanes;
  using Math<T>::All, Math<T>::kInfinity;

  static Vector Add(Vector a, Vector b) { return a + b; }
  static Vector Sub(Vector a, Vector b) { return a - b; }
  static Vector Mul(Vector a, Vector b) { return a * b; }
  static Vector Div(Vector a, Vector b) { return a / b; }
  static Vector Maximum(Vector a, Vector b) { return ((a > b) | (a != a)) ? a : b; }  // a NaN wins
  static Vector Minimum(Vector a, Vector b) { return ((a < b) | (a != a)) ? a : b; }

  static Vector Sqrt(Vector a) {
    for (int64_t i = 0; i < kLanes; i++) {  // the compiler knows the instruction for all lanes
      if constexpr (sizeof(T) == 4) {
        a[i] = __builtin_sqrtf(a[i]);
      } else {
        a[i] = __builtin_sqrt(a[i]);
      }
    }
    return a;
  }

  // powers as pow gives them, which knows no negative zero where it takes a root
  static Vector Cube(Vector a) { return a * a * a; }
  static Vector Inverse(Vector a) { return 1 / a; }
  static Vector InverseSquare(Vector a) { return (1 / a) * (1 / a); }
  static Vector Root(Vector a) { return a == -kInfinity ? All(kInfinity) : Sqrt(a + 0); }
  static Vector InverseRoot(Vector a) { return 1 / Root(a); }

  static Vector Truth(decltype(Vector{} < Vector{}) holds) { return holds ? All(1) : All(0); }
  static Vector Eq(Vector a, Vector b) { return Truth(a == b); }
  static Vector Ne(Vector a, Vector b) { return Truth(a != b); }
  static Vector Ge(Vector a, Vector b) { return Truth(a >= b); }
  static Vector Gt(Vector a, Vector b) { return Truth(a > b); }
  static Vector Le(Vector a, Vector b) { return Truth(a <= b); }
  static Vector Lt(Vector a, Vector b) { return Truth(a < b); }
};

/// Truths are float32, whatever is compared.
template <typename T, auto kFormula>
void Compare(const T* a, int64_t a_step, const T* b, int64_t b_step, float* out, int64_t size,
             [[maybe_unused]] Stores stores) {
  if constexpr (sizeof(T) == sizeof(float)) {
    Binary<T, kFormula>(a, a_step, b, b_step, out, size, stores);
  } else {
    constexpr int64_t kBlock = 64;
    T truths[kBlock];
    for (int64_t i = 0; i < size; i += kBlock) {
      const int64_t count = size - i < kBlock ? size - i : kBlock;
      Binary<T, kFormula>(a + i * a_step, a_step, b + i * b_step, b_step, truths, count, Stores::kCached);
      for (int64_t j = 0; j < count; j++) out[i + j] = static_cast<float>(truths[j]);
    }
  }
}

template <typename T, typename F = Formulas<T>>
constexpr FloatLoops<T> kLoops = {
    &Unary<T, &F::Log>,  &Unary<T, &F::Exp>,         &Unary<T, &F::Tanh>,     &Unary<T, &F::Sqrt>,
    &Unary<T, &F::Abs>,  &Unary<T, &F::Cube>,        &Unary<T, &F::Inverse>,  &Unary<T, &F::InverseSquare>,
    &Unary<T, &F::Root>, &Unary<T, &F::InverseRoot>, &Binary<T, &F::Add>,     &Binary<T, &F::Sub>,
    &Binary<T, &F::Mul>, &Binary<T, &F::Div>,        &Binary<T, &F::Maximum>, &Binary<T, &F::Minimum>,
    &Compare<T, &F::Eq>, &Compare<T, &F::Ne>,        &Compare<T, &F::Ge>,     &Compare<T, &F::Gt>,
    &Compare<T, &F::Le>, &Compare<T, &F::Lt>};

}  // namespace

namespace NEEDLE_ISA {

template <typename T>
const FloatLoops<T>& TableOfFloatLoops() {
  return kLoops<T>;
}
template const FloatLoops<float>& TableOfFloatLoops<float>();
template const FloatLoops<double>& TableOfFloatLoops<double>();

}  // namespace NEEDLE_ISA
}  // namespace needle
