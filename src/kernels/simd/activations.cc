// The bends of neural networks and their gradients, one pass each.
#include "../float_loops.h"
#include "loops.h"

namespace needle {
namespace {

template <typename T>
struct Activations : Loops<T> {
  using typename Simd<T>::Vector;
  using Math<T>::All, Math<T>::Sigmoid;

  static Vector Silu(Vector a) { return a * Sigmoid(a); }

  // Gelu is a/2 (1 + tanh u) = a sigmoid(2u) for u = √(2/π) (a + 0.044715 a³): here 2u and its slope
  static constexpr T kGelu = T(1.5957691216057308), kCubic = T(0.044715), kFar = 22;
  static Vector GeluAngle(Vector a) { return kGelu * (a + kCubic * a * a * a); }
  static Vector Gelu(Vector a) { return a * Sigmoid(GeluAngle(a)); }

  static Vector ReluBackward(Vector a, Vector grad) { return grad * (a > 0 ? All(1) : All(0)); }
  static Vector TanhBackward(Vector y, Vector grad) { return grad * (1 - y * y); }
  static Vector SigmoidBackward(Vector y, Vector grad) { return grad * y * (1 - y); }
  static Vector SiluBackward(Vector a, Vector grad) {
    const Vector s = Sigmoid(a);
    return grad * (s + a * s * (1 - s));
  }
  static Vector GeluBackward(Vector a, Vector grad) {
    a = a > kFar ? All(kFar) : a < -kFar ? All(-kFar) : a;  // there the slope is 1 or 0; a² must not overflow
    const Vector s = Sigmoid(GeluAngle(a)), slope = kGelu * (1 + 3 * kCubic * a * a);
    return grad * (s + a * s * (1 - s) * slope);
  }
};

template <typename T>
void Dropout(const T* a, const T* uniform, T keep, T divisor, T* out, int64_t size, Stores stores) {
  using L = Loops<T>;
  const auto kept = [&](typename L::Vector a, typename L::Vector u) {
    return a * (u <= keep ? L::All(1) : L::All(0)) / divisor;
  };
  const int64_t i =
      StoreWhole(out, size, stores, [=](int64_t i) { return kept(L::Load(a + i), L::Load(uniform + i)); });
  const int64_t left = size - i;
  if (left > 0) L::StoreFirst(out + i, kept(L::LoadFirst(a + i, left), L::LoadFirst(uniform + i, left)), left);
}

template <typename T, typename F = Activations<T>>
constexpr ActivationLoops<T> kLoops = {
    &Unary<T, &F::Sigmoid>,       &Unary<T, &F::Silu>,          &Unary<T, &F::Gelu>,
    &Binary<T, &F::ReluBackward>, &Binary<T, &F::TanhBackward>, &Binary<T, &F::SigmoidBackward>,
    &Binary<T, &F::SiluBackward>, &Binary<T, &F::GeluBackward>, &Dropout<T>};

}  // namespace

namespace NEEDLE_ISA {

template <typename T>
const ActivationLoops<T>& TableOfActivations() {
  return kLoops<T>;
}
template const ActivationLoops<float>& TableOfActivations<float>();
template const ActivationLoops<double>& TableOfActivations<double>();

}  // namespace NEEDLE_ISA
}  // namespace needle
