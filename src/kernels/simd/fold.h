// Folding a row of numbers into one: in vectors, and in a tree over blocks.
#ifndef NEEDLE_KERNELS_SIMD_FOLD_H_
#define NEEDLE_KERNELS_SIMD_FOLD_H_

#include "loops.h"

namespace needle {
namespace {

struct Sum {
  template <typename V>
  static V Apply(V a, V b) {
    return a + b;
  }
};
struct Max {
  template <typename V>
  static V Apply(V a, V b) {
    return ((a > b) | (a != a)) ? a : b;  // a NaN wins
  }
};
struct Min {
  template <typename V>
  static V Apply(V a, V b) {
    return ((a < b) | (a != a)) ? a : b;
  }
};

template <typename T>
struct Folds : Loops<T> {
  using typename Simd<T>::Vector;
  using Simd<T>::kLanes;
  using Loops<T>::Load, Loops<T>::Store;

  static constexpr int64_t kSums = 8;                     // vectors that are folded into side by side
  static constexpr int64_t kBlock = 16 * kSums * kLanes;  // elements

  template <typename Op>
  static T FoldLanes(Vector value) {
    T lanes[kLanes];
    Store(lanes, value);
    for (int64_t width = kLanes / 2; width > 0; width /= 2) {
      for (int64_t j = 0; j < width; j++) lanes[j] = Op::Apply(lanes[j], lanes[j + width]);
    }
    return lanes[0];
  }

  template <typename Op>
  static T FoldBlock(const T* run, int64_t length) {
    if (length < kLanes) return FoldFew<Op>(run, length);
    Vector sums[kSums];
    const int64_t vectors = length / kLanes, used = vectors < kSums ? vectors : kSums;
    for (int64_t v = 0; v < used; v++) sums[v] = Load(run + v * kLanes);
    int64_t v = kSums;
    for (; v + kSums <= vectors; v += kSums) {
#pragma GCC unroll 8
      for (int64_t s = 0; s < kSums; s++) sums[s] = Op::Apply(sums[s], Load(run + (v + s) * kLanes));
    }
    for (int64_t s = 0; v + s < vectors; s++) sums[s] = Op::Apply(sums[s], Load(run + (v + s) * kLanes));
    for (int64_t width = used; width > 1; width = (width + 1) / 2) {
      for (int64_t s = 0; s < width / 2; s++) sums[s] = Op::Apply(sums[s], sums[s + (width + 1) / 2]);
    }
    const T whole = FoldLanes<Op>(sums[0]);
    const int64_t left = length - vectors * kLanes;
    return left ? Op::Apply(whole, FoldFew<Op>(run + vectors * kLanes, left)) : whole;
  }

  template <typename Op>
  static T FoldFew(const T* run, int64_t length) {
    T folded = run[0];
    for (int64_t i = 1; i < length; i++) folded = Op::Apply(folded, run[i]);
    return folded;
  }

  /// Any length from 1 on: blocks, halved like a tree.
  template <typename Op>
  static T Fold(const T* run, int64_t length) {
    if (length <= kBlock) return FoldBlock<Op>(run, length);
    const int64_t half = (length / 2 + kBlock - 1) / kBlock * kBlock;
    const T left = Fold<Op>(run, half);  // first: memory is fetched ahead only if it is read in order
    return Op::Apply(left, Fold<Op>(run + half, length - half));
  }
};

}  // namespace
}  // namespace needle

#endif  // NEEDLE_KERNELS_SIMD_FOLD_H_
