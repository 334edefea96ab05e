// Sums, maxima and minima of rows and of columns.
#include "../row_loops.h"
#include "fold.h"

namespace needle {
namespace {

template <typename T>
struct Columns : Folds<T> {
  using Wide = Simd<T>;
  using Vector = typename Wide::Vector;

  static constexpr int64_t kLanes = Wide::kLanes;
  static constexpr int64_t kRows = 16;  // folded one after the other; more are halved like a tree
  // columns that are folded together, of 8 KiB: rows and those that come fill a quarter of a second cache of 1 MiB
  static constexpr int64_t kWidth = 8192 / static_cast<int64_t>(sizeof(T));
  static constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(T));  // elements in a line of the cache

  /// Rows that will be folded next: into the second-level cache with them, row after row, as memory is read fastest.
  struct Coming {
    const T* row;
    int64_t row_stride, rows, cols, at = 0;

    void Fetch(int64_t count) {
      if (rows == 0) return;
      for (int64_t j = 0; j < count; j += kLine) __builtin_prefetch(row + at + j, 0, 2);
      at += count;
      if (at >= cols) at = 0, row += row_stride, rows--;
    }
    void FetchRest() {
      while (rows > 0) Fetch(cols - at);
    }
  };

  /// kVectors columns of vectors, down the rows.
  template <typename Op, int kVectors>
  static void FoldStrip(const T* a, int64_t row_stride, int64_t rows, T* out, Coming& coming) {
    Vector folded[kVectors];
    for (int v = 0; v < kVectors; v++) folded[v] = Wide::Load(a + v * kLanes);
    coming.Fetch(kVectors * kLanes);
    for (int64_t k = 1; k < rows; k++) {
      a += row_stride;
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; v++) folded[v] = Op::Apply(folded[v], Wide::Load(a + v * kLanes));
      coming.Fetch(kVectors * kLanes);
    }
    for (int v = 0; v < kVectors; v++) Wide::Store(out + v * kLanes, folded[v]);
  }

  /// A few rows, strip by strip in registers.
  template <typename Op>
  static void FoldRows(const T* a, int64_t row_stride, int64_t rows, T* out, int64_t cols, Coming coming) {
    int64_t j = 0;
    for (; j + 8 * kLanes <= cols; j += 8 * kLanes) FoldStrip<Op, 8>(a + j, row_stride, rows, out + j, coming);
    for (; j + kLanes <= cols; j += kLanes) FoldStrip<Op, 1>(a + j, row_stride, rows, out + j, coming);
    for (; j < cols; j++) {
      out[j] = a[j];
      for (int64_t k = 1; k < rows; k++) out[j] = Op::Apply(out[j], a[k * row_stride + j]);
    }
    coming.FetchRest();
  }

  /// more: how many rows after these are folded next.
  template <typename Op>
  static void FoldTree(const T* a, int64_t row_stride, int64_t rows, T* out, int64_t cols, int64_t more) {
    if (rows <= kRows) {
      const Coming coming = {a + rows * row_stride, row_stride, more < kRows ? more : kRows, cols};
      return FoldRows<Op>(a, row_stride, rows, out, cols, coming);
    }
    const int64_t half = (rows / 2 + kRows - 1) / kRows * kRows;
    T other[kWidth];
    FoldTree<Op>(a, row_stride, half, out, cols, rows - half);
    FoldTree<Op>(a + half * row_stride, row_stride, rows - half, other, cols, more);
    for (int64_t j = 0; j < cols; j++) out[j] = Op::Apply(out[j], other[j]);
  }

  template <typename Op>
  static void Fold(const T* a, int64_t row_stride, int64_t rows, T* out, int64_t cols, int64_t more) {
    // narrow rows without gaps: several are one wide row
    const int64_t together = row_stride == cols && cols < kLanes ? kWidth / cols : 1;
    if (together > 1 && rows >= 2 * together) {
      T wide[kWidth];
      const int64_t whole = rows / together * together;
      FoldTree<Op>(a, together * cols, rows / together, wide, together * cols, more / together);
      FoldTree<Op>(wide, cols, together, out, cols, 0);
      if (whole == rows) return;
      FoldTree<Op>(a + whole * cols, cols, rows - whole, wide, cols, 0);
      for (int64_t j = 0; j < cols; j++) out[j] = Op::Apply(out[j], wide[j]);
      return;
    }
    for (int64_t j = 0; j < cols; j += kWidth) {
      FoldTree<Op>(a + j, row_stride, rows, out + j, cols - j < kWidth ? cols - j : kWidth, more);
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
