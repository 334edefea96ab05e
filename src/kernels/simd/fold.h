// Folding a row of numbers into one: in vectors, and in a tree over blocks.
#ifndef NEEDLE_KERNELS_SIMD_FOLD_H_
#define NEEDLE_KERNELS_SIMD_FOLD_H_

#include "loops.h"

namespace needle {
namespace {

// Apply is the fold.  ApplyInBulk may lose a NaN, if kMayLoseNan says so; then whoever calls it has to look for one.
struct Sum {
  static constexpr bool kMayLoseNan = false;
  template <typename V>
  static V Apply(V a, V b) {
    return a + b;
  }
  template <typename V>
  static V ApplyInBulk(V a, V b) {
    return a + b;
  }
};
struct Max {
  static constexpr bool kMayLoseNan = true;
  template <typename V>
  static V Apply(V a, V b) {
    return ((a > b) | (a != a)) ? a : b;  // a NaN wins
  }
  template <typename V>
  static V ApplyInBulk(V a, V b) {
    return a > b ? a : b;  // one instruction
  }
};
struct Min {
  static constexpr bool kMayLoseNan = true;
  template <typename V>
  static V Apply(V a, V b) {
    return ((a < b) | (a != a)) ? a : b;
  }
  template <typename V>
  static V ApplyInBulk(V a, V b) {
    return a < b ? a : b;
  }
};

// Of 32 bytes at most: rows of any length begin anywhere, and then every vector of 64 bytes lies in two lines, but only
// every other of these.
constexpr int64_t kFoldBytes = kVectorBytes < 32 ? kVectorBytes : 32;

template <typename T>
struct Folds : Loops<T> {
  using Short = Simd<T, kFoldBytes>;
  using Vector = typename Short::Vector;
  using Truths = decltype(Vector{} != Vector{});

  static constexpr int64_t kLanes = Short::kLanes;
  static constexpr int64_t kSums = 8;                     // vectors that are folded into side by side
  static constexpr int64_t kBlock = 32 * kSums * kLanes;  // elements

  /// The upper half of the lanes onto the lower, again and again.
  template <typename Op, typename V>
  static T FoldLanes(V value) {
    if constexpr (sizeof(V) > 16) {
      typename Simd<T, sizeof(V) / 2>::Vector halves[2];
      __builtin_memcpy(halves, &value, sizeof(V));
      return FoldLanes<Op>(Op::Apply(halves[0], halves[1]));
    } else {
      T folded[sizeof(V) / sizeof(T)];
      __builtin_memcpy(folded, &value, sizeof(V));
      for (size_t width = sizeof(V) / sizeof(T) / 2; width > 0; width /= 2) {
        for (size_t j = 0; j < width; j++) folded[j] = Op::Apply(folded[j], folded[j + width]);
      }
      return folded[0];
    }
  }

  static bool Any(Truths truths) {
    auto any = truths[0];
    for (int64_t i = 1; i < kLanes; i++) any |= truths[i];
    return any != 0;
  }

  template <typename Op>
  static T FoldBlock(const T* run, int64_t length) {
    if (length < kLanes) return FoldFew<Op>(run, length);
    Vector sums[kSums];
    Truths nans[kSums] = {};
    const auto fold = [&](int64_t s, Vector value) {
      sums[s] = Op::ApplyInBulk(sums[s], value);
      if constexpr (Op::kMayLoseNan) nans[s] |= value != value;
    };
    const int64_t vectors = length / kLanes, used = vectors < kSums ? vectors : kSums;
    for (int64_t s = 0; s < used; s++) {
      sums[s] = Short::Load(run + s * kLanes);
      if constexpr (Op::kMayLoseNan) nans[s] = sums[s] != sums[s];
    }
    int64_t v = kSums;
    for (; v + kSums <= vectors; v += kSums) {
#pragma GCC unroll 8
      for (int64_t s = 0; s < kSums; s++) fold(s, Short::Load(run + (v + s) * kLanes));
    }
    for (int64_t s = 0; v + s < vectors; s++) fold(s, Short::Load(run + (v + s) * kLanes));
    for (int64_t width = used; width > 1; width = (width + 1) / 2) {
      for (int64_t s = 0; s < width / 2; s++) {
        sums[s] = Op::ApplyInBulk(sums[s], sums[s + (width + 1) / 2]);
        if constexpr (Op::kMayLoseNan) nans[s] |= nans[s + (width + 1) / 2];
      }
    }
    const bool has_nan = Op::kMayLoseNan && Any(nans[0]);
    const T whole = has_nan ? Math<T>::kNan : FoldLanes<Op>(sums[0]);
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
