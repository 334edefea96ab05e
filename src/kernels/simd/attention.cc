// Rows of attention's logits, forward and backward.
#include "../attention.h"

#include "math.h"
#include "vector.h"

namespace needle {
namespace {

template <typename T>
struct Rows : Math<T> {
  using typename Simd<T>::Vector;
  using Simd<T>::kLanes, Simd<T>::Load, Simd<T>::Store;
  using Math<T>::All, Math<T>::Exp;

  /// The end of a row, shorter than a vector; what is missing is `filler`.
  static Vector LoadPart(const T* from, int64_t lanes, T filler) {
    Vector value = All(filler);
    for (int64_t i = 0; i < lanes; i++) value[i] = from[i];
    return value;
  }

  static void StorePart(T* to, int64_t lanes, Vector value) {
    for (int64_t i = 0; i < lanes; i++) to[i] = value[i];
  }

  static T Sum(Vector value) {
    for (int64_t half = kLanes / 2; half; half /= 2) {
      for (int64_t i = 0; i < half; i++) value[i] += value[i + half];
    }
    return value[0];
  }

  /// The greater of two; NaN if one is NaN.
  static Vector Greater(Vector a, Vector b) { return a > b ? a : b == b ? (a == a ? b : a) : b; }

  static T Largest(const T* row, int64_t count) {
    Vector largest = All(row[0]);
    int64_t j = 0;
    for (; j + kLanes <= count; j += kLanes) largest = Greater(Load(row + j), largest);
    if (j < count) largest = Greater(LoadPart(row + j, count - j, row[0]), largest);
    for (int64_t i = 1; i < kLanes; i++) {
      const T other = largest[i];
      if (other > largest[0] || other != other) largest[0] = other;
      if (largest[0] != largest[0]) break;
    }
    return largest[0];
  }

  static T Softmax(T* logits, int64_t count, T scale, T* lse) {
    const T largest = Largest(logits, count);
    Vector sum = {};
    int64_t j = 0;
    for (; j + kLanes <= count; j += kLanes) {
      const Vector value = Exp((Load(logits + j) - largest) * scale);
      Store(logits + j, value);
      sum += value;
    }
    T total = Sum(sum);
    if (j < count) {
      const Vector value = Exp((LoadPart(logits + j, count - j, largest) - largest) * scale);
      StorePart(logits + j, count - j, value);
      for (int64_t i = 0; i < count - j; i++) total += value[i];
    }
    *lse = largest * scale + Math<T>::Log(All(total))[0];
    return 1 / total;
  }

  static void Backward(T* logits, T* probs_grad, int64_t count, T scale, T lse, T weighted) {
    int64_t j = 0;
    for (; j + kLanes <= count; j += kLanes) {
      const Vector probs = Exp(Load(logits + j) * scale - lse);
      Store(probs_grad + j, probs * (Load(probs_grad + j) - weighted) * scale);
      Store(logits + j, probs);
    }
    if (j == count) return;
    const Vector probs = Exp(LoadPart(logits + j, count - j, 0) * scale - lse);
    StorePart(probs_grad + j, count - j, probs * (LoadPart(probs_grad + j, count - j, 0) - weighted) * scale);
    StorePart(logits + j, count - j, probs);
  }

  static T Dot(const T* a, const T* b, int64_t count) {
    Vector sum = {};
    int64_t j = 0;
    for (; j + kLanes <= count; j += kLanes) sum += Load(a + j) * Load(b + j);
    if (j < count) sum += LoadPart(a + j, count - j, 0) * LoadPart(b + j, count - j, 0);
    return Sum(sum);
  }

  static void Scale(T* a, int64_t count, T factor) {
    int64_t j = 0;
    for (; j + kLanes <= count; j += kLanes) Store(a + j, Load(a + j) * factor);
    for (; j < count; j++) a[j] *= factor;
  }
};

}  // namespace

namespace NEEDLE_ISA {

template <typename T>
AttentionKernels<T> TableOfAttention() {
  return {&Rows<T>::Softmax, &Rows<T>::Backward, &Rows<T>::Dot, &Rows<T>::Scale};
}
template AttentionKernels<float> TableOfAttention<float>();
template AttentionKernels<double> TableOfAttention<double>();

}  // namespace NEEDLE_ISA
}  // namespace needle
