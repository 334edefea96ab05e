// Sums, maxima and minima of rows and of columns.
#include "../row_loops.h"
#include "fold.h"

namespace needle {
namespace {

template <typename T>
struct Columns : Folds<T> {
  using typename Simd<T>::Vector;
  using Simd<T>::kLanes;
  using Loops<T>::Load, Loops<T>::Store;

  static constexpr int64_t kRows = 32;          // folded one after the other; more are halved like a tree
  static constexpr int64_t kWidth = 32 * kLanes;  // columns that are folded together: they stay in the cache

  /// Four rows at a time onto out, from left to right, so that memory is fetched ahead.
  template <typename Op>
  static void FoldRows(const T* a, int64_t row_stride, int64_t rows, T* out, int64_t cols) {
    for (int64_t j = 0; j < cols; j++) out[j] = a[j];
    int64_t k = 1;
    for (; k + 4 <= rows; k += 4) AddRows<Op, 4>(a + k * row_stride, row_stride, out, cols);
    for (; k < rows; k++) AddRows<Op, 1>(a + k * row_stride, row_stride, out, cols);
  }

  template <typename Op, int kCount>
  static void AddRows(const T* a, int64_t row_stride, T* out, int64_t cols) {
    int64_t j = 0;
    for (; j + kLanes <= cols; j += kLanes) {
      Vector folded = Load(out + j);
#pragma GCC unroll 4
      for (int k = 0; k < kCount; k++) folded = Op::Apply(folded, Load(a + k * row_stride + j));
      Store(out + j, folded);
    }
    for (; j < cols; j++) {
      for (int k = 0; k < kCount; k++) out[j] = Op::Apply(out[j], a[k * row_stride + j]);
    }
  }

  template <typename Op>
  static void FoldTree(const T* a, int64_t row_stride, int64_t rows, T* out, int64_t cols) {
    if (rows <= kRows) return FoldRows<Op>(a, row_stride, rows, out, cols);
    const int64_t half = (rows / 2 + kRows - 1) / kRows * kRows;
    T other[kWidth];
    FoldTree<Op>(a, row_stride, half, out, cols);
    FoldTree<Op>(a + half * row_stride, row_stride, rows - half, other, cols);
    for (int64_t j = 0; j < cols; j++) out[j] = Op::Apply(out[j], other[j]);
  }

  template <typename Op>
  static void Fold(const T* a, int64_t row_stride, int64_t rows, T* out, int64_t cols) {
    // narrow rows without gaps: several are one wide row
    const int64_t together = row_stride == cols && cols < kLanes ? kWidth / cols : 1;
    if (together > 1 && rows >= 2 * together) {
      T wide[kWidth];
      const int64_t whole = rows / together * together;
      FoldTree<Op>(a, together * cols, rows / together, wide, together * cols);
      FoldTree<Op>(wide, cols, together, out, cols);
      if (whole == rows) return;
      FoldTree<Op>(a + whole * cols, cols, rows - whole, wide, cols);
      for (int64_t j = 0; j < cols; j++) out[j] = Op::Apply(out[j], wide[j]);
      return;
    }
    for (int64_t j = 0; j < cols; j += kWidth) {
      FoldTree<Op>(a + j, row_stride, rows, out + j, cols - j < kWidth ? cols - j : kWidth);
    }
  }
};

template <typename T, typename F = Columns<T>>
constexpr FoldLoops<T> kLoops = {&Folds<T>::template Fold<Sum>, &Folds<T>::template Fold<Max>,
                                 &Folds<T>::template Fold<Min>, &F::template Fold<Sum>,
                                 &F::template Fold<Max>,        &F::template Fold<Min>};

}  // namespace

namespace NEEDLE_ISA {

template <typename T>
const FoldLoops<T>& TableOfFolds() {
  return kLoops<T>;
}
template const FoldLoops<float>& TableOfFolds<float>();
template const FoldLoops<double>& TableOfFolds<double>();

}  // namespace NEEDLE_ISA
}  // namespace needle
