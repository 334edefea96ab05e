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
  static constexpr int64_t kStrip = 8;  // vectors that registers hold
  static constexpr int kTogether = 4;   // rows that are read together
  static constexpr int64_t kRows = 16;  // folded one after the other; more are halved like a tree
  static constexpr int64_t kWidth = 8192 / static_cast<int64_t>(sizeof(T));  // columns: a part of a first-level cache

  /// kVectors columns of vectors, down the rows.
  template <typename Op, int kVectors>
  static void FoldStrip(const T* a, int64_t row_stride, int64_t rows, T* out) {
    Vector folded[kVectors];
    for (int v = 0; v < kVectors; v++) folded[v] = Wide::Load(a + v * kLanes);
    for (int64_t k = 1; k < rows; k++) {
      a += row_stride;
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; v++) folded[v] = Op::Apply(folded[v], Wide::Load(a + v * kLanes));
    }
    for (int v = 0; v < kVectors; v++) Wide::Store(out + v * kLanes, folded[v]);
  }

  /// Few columns, strip by strip in registers.
  template <typename Op>
  static void FoldNarrow(const T* a, int64_t row_stride, int64_t rows, T* out, int64_t cols) {
    int64_t j = 0;
    for (; j + kStrip * kLanes <= cols; j += kStrip * kLanes) FoldStrip<Op, kStrip>(a + j, row_stride, rows, out + j);
    for (; j + kLanes <= cols; j += kLanes) FoldStrip<Op, 1>(a + j, row_stride, rows, out + j);
    for (; j < cols; j++) {
      out[j] = a[j];
      for (int64_t k = 1; k < rows; k++) out[j] = Op::Apply(out[j], a[k * row_stride + j]);
    }
  }

  /// out[j] = the fold of kMany rows' element j, and of out[j] if kOnto.  Meanwhile the rows from next on are fetched
  /// into the second-level cache; they may lie behind the last row, as prefetching cannot fail.
  template <typename Op, int kMany, bool kOnto>
  static void FoldOnto(const T* a, int64_t row_stride, T* out, int64_t cols, const T* next) {
    int64_t j = 0;
    for (; j + kLanes <= cols; j += kLanes) {
      Vector folded = Wide::Load(a + j);
      for (int k = 0; k < kMany; k++) __builtin_prefetch(next + k * row_stride + j, 0, 2);
      for (int k = 1; k < kMany; k++) folded = Op::Apply(folded, Wide::Load(a + k * row_stride + j));
      Wide::Store(out + j, kOnto ? Op::Apply(Wide::Load(out + j), folded) : folded);
    }
    for (; j < cols; j++) {
      T folded = a[j];
      for (int k = 1; k < kMany; k++) folded = Op::Apply(folded, a[k * row_stride + j]);
      out[j] = kOnto ? Op::Apply(out[j], folded) : folded;
    }
  }

  /// kMany rows at a time, and what is left half as many at a time.
  template <typename Op, int kMany>
  static void FoldInTurn(const T* a, int64_t row_stride, int64_t rows, T* out, int64_t cols, const T* end, bool onto) {
    for (; rows >= kMany; rows -= kMany, onto = true) {
      const T* const these = a;
      a += kMany * row_stride;
      const T* const next = a < end ? a : these;
      onto ? FoldOnto<Op, kMany, true>(these, row_stride, out, cols, next)
           : FoldOnto<Op, kMany, false>(these, row_stride, out, cols, next);
    }
    if constexpr (kMany > 1) FoldInTurn<Op, kMany / 2>(a, row_stride, rows, out, cols, end, onto);
  }

  /// A few rows; those that come then are fetched, if they begin before end.  Wide ones are read in about the order of
  /// memory, which is fastest, while out stays in the first-level cache.
  template <typename Op>
  static void FoldRows(const T* a, int64_t row_stride, int64_t rows, T* out, int64_t cols, const T* end) {
    if (cols <= kStrip * kLanes) return FoldNarrow<Op>(a, row_stride, rows, out, cols);
    FoldInTurn<Op, kTogether>(a, row_stride, rows, out, cols, end, false);
  }

  template <typename Op>
  static void FoldTree(const T* a, int64_t row_stride, int64_t rows, T* out, int64_t cols, const T* end) {
    if (rows <= kRows) return FoldRows<Op>(a, row_stride, rows, out, cols, end);
    const int64_t half = (rows / 2 + kRows - 1) / kRows * kRows;
    T other[kWidth];
    FoldTree<Op>(a, row_stride, half, out, cols, end);
    FoldTree<Op>(a + half * row_stride, row_stride, rows - half, other, cols, end);
    FoldOnto<Op, 1, true>(other, 0, out, cols, other);
  }

  template <typename Op>
  static void Fold(const T* a, int64_t row_stride, int64_t rows, T* out, int64_t cols, const T* end) {
    // short rows without gaps: several are one wide row
    const int64_t together = row_stride == cols ? kWidth / cols : 1;
    if (together > 1 && rows >= 2 * together) {
      T wide[kWidth];
      const int64_t whole = rows / together * together;
      FoldTree<Op>(a, together * cols, rows / together, wide, together * cols, end);
      FoldTree<Op>(wide, cols, together, out, cols, wide);
      if (whole == rows) return;
      FoldTree<Op>(a + whole * cols, cols, rows - whole, wide, cols, end);
      FoldOnto<Op, 1, true>(wide, 0, out, cols, wide);
      return;
    }
    for (int64_t j = 0; j < cols; j += kWidth) {
      FoldTree<Op>(a + j, row_stride, rows, out + j, Smaller(kWidth, cols - j), end);
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
