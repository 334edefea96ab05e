// A vector of elements at a time: what a step reads of them, the formula, what it writes.
#include "../optimizer.h"

#include "vector.h"

namespace needle {
namespace {

template <typename T>
using Vector = typename Simd<T>::Vector;

/// The compiler makes one instruction of it.
template <typename T>
Vector<T> Root(Vector<T> x) {
  for (int64_t i = 0; i < Simd<T>::kLanes; i++)
    x[i] = static_cast<T>(sizeof(T) == 4 ? __builtin_sqrtf(x[i]) : __builtin_sqrt(x[i]));
  return x;
}

template <typename T>
struct Values {
  Vector<T> param, grad, first, second;
};

// ---- the formulas ---------------------------------------------------------------------------------------------------

template <typename T>
struct SgdRule : SgdNumbers<T> {
  static constexpr bool kHasSecond = false;

  Values<T> operator()(const Values<T>& x) const {
    const Vector<T> g = x.grad + this->weight_decay * x.param;
    const Vector<T> u = this->momentum * x.first + this->rest * g;
    const Vector<T> direction = this->nesterov ? this->momentum * u + this->rest * g : u;
    return {x.param - this->step * direction, g, u, u};
  }
};

template <typename T>
struct AdamRule : AdamNumbers<T> {
  static constexpr bool kHasSecond = true;

  Values<T> operator()(const Values<T>& x) const {
    const Vector<T> g = x.grad + this->weight_decay * x.param;
    const Vector<T> m = this->beta1 * x.first + this->rest1 * g;
    const Vector<T> v = this->beta2 * x.second + this->rest2 * (g * g);
    return {this->kept * x.param - this->step * m / (Root<T>(v) * this->root + this->eps), g, m, v};
  }
};

template <typename T>
struct RmspropRule : RmspropNumbers<T> {
  static constexpr bool kHasSecond = true;

  Values<T> operator()(const Values<T>& x) const {
    const Vector<T> g = x.grad + this->weight_decay * x.param;
    const Vector<T> v = this->alpha * x.second + this->rest * (g * g);
    const Vector<T> u = this->momentum * x.first + g / (Root<T>(v) + this->eps);
    return {x.param - this->lr * u, g, u, v};
  }
};

// ---- the loop -------------------------------------------------------------------------------------------------------

template <typename T>
struct Whole {
  static Vector<T> Load(const T* from) { return Simd<T>::Load(from); }
  static void Store(T* to, Vector<T> value) { Simd<T>::Store(to, value); }
};

/// The first lanes of a vector: the last elements of a piece go through the same arithmetic as all others.
template <typename T>
struct FirstLanes {
  int64_t count;

  Vector<T> Load(const T* from) const {
    Vector<T> value{};
    for (int64_t i = 0; i < count; i++) value[i] = from[i];
    return value;
  }
  void Store(T* to, Vector<T> value) const {
    for (int64_t i = 0; i < count; i++) to[i] = value[i];
  }
};

template <typename T, typename Rule, typename Lanes>
void StepAt(const Rule& rule, const StepArrays<T>& piece, int64_t i, const Lanes& lanes) {
  Values<T> x{lanes.Load(piece.param + i), lanes.Load(piece.grad + i), lanes.Load(piece.first + i), {}};
  if constexpr (Rule::kHasSecond) x.second = lanes.Load(piece.second + i);
  x = rule(x);
  lanes.Store(piece.new_param + i, x.param);
  lanes.Store(piece.new_first + i, x.first);
  if constexpr (Rule::kHasSecond) lanes.Store(piece.new_second + i, x.second);
}

template <typename T, typename Rule>
void StepOver(const Rule& rule, const StepArrays<T>& piece, int64_t count) {
  int64_t i = 0;
  for (; i + Simd<T>::kLanes <= count; i += Simd<T>::kLanes) StepAt(rule, piece, i, Whole<T>{});
  if (i < count) StepAt(rule, piece, i, FirstLanes<T>{count - i});
}

// ---- a sum ----------------------------------------------------------------------------------------------------------

/// Squares of float are exact in double, and eight sums run side by side.
template <typename T>
double Squares(const T* values, int64_t count) {
  constexpr int64_t kSums = 32;
  double sums[kSums] = {}, total = 0;
  int64_t i = 0;
  for (; i + kSums <= count; i += kSums) {
    for (int64_t j = 0; j < kSums; j++) sums[j] += double(values[i + j]) * double(values[i + j]);
  }
  for (; i < count; i++) total += double(values[i]) * double(values[i]);
  for (int64_t half = kSums / 2; half > 0; half /= 2) {
    for (int64_t j = 0; j < half; j++) sums[j] += sums[j + half];
  }
  return total + sums[0];
}

}  // namespace

namespace NEEDLE_ISA {

template <typename T>
void Sgd(const SgdNumbers<T>& by, const StepArrays<T>& piece, int64_t count) {
  StepOver(SgdRule<T>{by}, piece, count);
}

template <typename T>
void Adam(const AdamNumbers<T>& by, const StepArrays<T>& piece, int64_t count) {
  StepOver(AdamRule<T>{by}, piece, count);
}

template <typename T>
void Rmsprop(const RmspropNumbers<T>& by, const StepArrays<T>& piece, int64_t count) {
  StepOver(RmspropRule<T>{by}, piece, count);
}

template <typename T>
double SquaresOf(const T* values, int64_t count) {
  return Squares(values, count);
}

#define NEEDLE_INSTANTIATE(T)                                                     \
  template void Sgd(const SgdNumbers<T>&, const StepArrays<T>&, int64_t);         \
  template void Adam(const AdamNumbers<T>&, const StepArrays<T>&, int64_t);       \
  template void Rmsprop(const RmspropNumbers<T>&, const StepArrays<T>&, int64_t); \
  template double SquaresOf(const T*, int64_t);
NEEDLE_INSTANTIATE(float)
NEEDLE_INSTANTIATE(double)

}  // namespace NEEDLE_ISA
}  // namespace needle
