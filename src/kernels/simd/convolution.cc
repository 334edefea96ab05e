// The micro-kernels of convolution.  A tile of sums stays in registers while k runs; one factor comes from a packed
// panel, the other, number by number, from wherever in the image it lies: nothing of the image is packed.
#include "../convolution_loops.h"

#include "quads.h"

namespace needle {
namespace {

constexpr int64_t kTileRows = kRegisters == 32 ? 12 : 6, kVectors = 2;  // the sums fit into the registers
constexpr int64_t kChannelwiseRows = 4;

template <typename T>
struct Loops : Simd<T> {
  using typename Simd<T>::Vector;
  using Simd<T>::kLanes, Simd<T>::Load, Simd<T>::Store;

  static constexpr int64_t kTileColumns = kVectors * kLanes;

  // ---- copying -----------------------------------------------------------------------------------------------------

  static constexpr int64_t kQuad = Quads<T>::kQuad;  // so many rows of so many are turned at once
  static constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(T));

  static void Copy(const T* from, int64_t row_stride, int64_t column_stride, int64_t rows, int64_t columns, T* to,
                   int64_t width) {
    if (column_stride == 1) {
      for (int64_t k = 0; k < rows; k++) CopyRow(from + k * row_stride, columns, to + k * width);
    } else if (row_stride == 1) {
      CopyTurned(from, column_stride, rows, columns, to, width);
    } else {
      CopyElements(from, row_stride, column_stride, rows, columns, to, width);
    }
  }

  static void CopyRow(const T* from, int64_t columns, T* to) {
    int64_t j = 0;
    for (; j + kLanes <= columns; j += kLanes) Store(to + j, Load(from + j));
    for (; j < columns; j++) to[j] = from[j];
  }

  static void CopyElements(const T* from, int64_t row_stride, int64_t column_stride, int64_t rows, int64_t columns,
                           T* to, int64_t width) {
    for (int64_t k = 0; k < rows; k++) {
      for (int64_t j = 0; j < columns; j++) to[k * width + j] = from[k * row_stride + j * column_stride];
    }
  }

  /// What lies column by column: a cache line of each is used up before the next ones are read.
  static void CopyTurned(const T* from, int64_t column_stride, int64_t rows, int64_t columns, T* to, int64_t width) {
    const int64_t whole_rows = rows - rows % kQuad, whole = columns - columns % kQuad;
    for (int64_t line = 0; line < whole_rows; line += kLine) {
      const int64_t end = Smaller(line + kLine, whole_rows);
      for (int64_t j = 0; j < whole; j += kQuad) {
        for (int64_t k = line; k < end; k += kQuad) {
          Quads<T>::Transpose(from + j * column_stride + k, column_stride, kQuad, to + k * width + j, width);
        }
      }
    }
    CopyElements(from + whole * column_stride, 1, column_stride, whole_rows, columns - whole, to + whole, width);
    CopyElements(from + whole_rows, 1, column_stride, rows - whole_rows, columns, to + whole_rows * width, width);
  }

  // ---- finishing a sum ---------------------------------------------------------------------------------------------

  static void StoreVector(Vector sum, T* to, int64_t column, const Finish<T>& finish) {
    if (finish.accumulate) sum += Load(to);
    if (finish.bias) sum += Load(finish.bias + column);
    if (finish.relu) sum = sum < 0 ? Vector{} : sum;  // so that NaN stays
    Store(to, sum);
  }

  static void StorePart(Vector sum, T* to, int64_t count, int64_t column, const Finish<T>& finish) {
    for (int64_t j = 0; j < count; j++) {
      T value = sum[j];
      if (finish.accumulate) value += to[j];
      if (finish.bias) value += finish.bias[column + j];
      to[j] = finish.relu && value < 0 ? T(0) : value;
    }
  }

  static void StoreSome(Vector sum, T* to, int64_t count, int64_t column, const Finish<T>& finish) {
    count >= kLanes ? StoreVector(sum, to, column, finish) : StorePart(sum, to, count, column, finish);
  }

  // ---- products ----------------------------------------------------------------------------------------------------

  /// A tile of `row_count` ≤ kRows rows and `columns` ≤ kUsed vectors.
  template <int64_t kRows, int64_t kUsed>
  static void MultiplyTile(const T* x, const Place* rows, int64_t row_count, const Place* steps, int64_t depth,
                           const T* panel, T* out, int64_t columns, const Finish<T>& finish) {
    const T* row[kRows];
    for (int64_t i = 0; i < kRows; i++) row[i] = x + rows[i < row_count ? i : 0].x;
    Vector sum[kRows][kUsed] = {};
    for (const Place *step = steps, *end = steps + depth; step < end; step++) {
      const int64_t at = step->x;
      const T* from = panel + step->other;
      Vector b[kUsed];
#pragma GCC unroll 4
      for (int64_t v = 0; v < kUsed; v++) b[v] = Load(from + v * kLanes);
#pragma GCC unroll 16
      for (int64_t i = 0; i < kRows; i++) {
        const Vector a = row[i][at] - Vector{};  // x - 0 is x, but 0 + x would be computed: it differs for -0
#pragma GCC unroll 4
        for (int64_t v = 0; v < kUsed; v++) sum[i][v] += a * b[v];
      }
    }
#pragma GCC unroll 16
    for (int64_t i = 0; i < kRows; i++) {
      if (i >= row_count) break;
#pragma GCC unroll 4
      for (int64_t v = 0; v < kUsed; v++) {
        StoreSome(sum[i][v], out + rows[i].other + v * kLanes, columns - v * kLanes, v * kLanes, finish);
      }
    }
  }

  /// Tiles of kRows rows while there are so many; what is left fits a tile of half as many, or does not.
  template <int64_t kUsed, int64_t kRows = kTileRows>
  static void MultiplyRows(const T* x, const Place* rows, int64_t row_count, const Place* steps, int64_t depth,
                           const T* panel, T* out, int64_t columns, const Finish<T>& finish) {
    for (; row_count > kRows / 2; rows += kRows, row_count -= kRows) {
      const int64_t count = Smaller(kRows, row_count);
      MultiplyTile<kRows, kUsed>(x, rows, count, steps, depth, panel, out, columns, finish);
    }
    if constexpr (kRows > 1) {
      if (row_count > 0) MultiplyRows<kUsed, kRows / 2>(x, rows, row_count, steps, depth, panel, out, columns, finish);
    }
  }

  static void Multiply(const T* x, const Place* rows, int64_t row_count, const Place* steps, int64_t depth,
                       const T* panel, T* out, int64_t columns, const Finish<T>& finish) {
    const auto multiply = columns > kLanes ? &MultiplyRows<kVectors> : &MultiplyRows<1>;
    multiply(x, rows, row_count, steps, depth, panel, out, columns, finish);
  }

  // ---- depthwise ---------------------------------------------------------------------------------------------------

  /// Some rows, and of the columns one vector.
  template <int64_t kRows>
  static void ChannelwiseTile(const T* x, const Place* rows, const Place* steps, int64_t depth, const T* panel, T* out,
                              int64_t column, const Finish<T>& finish) {
    Vector sum[kRows] = {};
    for (int64_t k = 0; k < depth; k++) {
      const Vector b = Load(panel + steps[k].other + column);
      for (int64_t i = 0; i < kRows; i++) sum[i] += Load(x + rows[i].x + steps[k].x + column) * b;
    }
    for (int64_t i = 0; i < kRows; i++) StoreVector(sum[i], out + rows[i].other + column, column, finish);
  }

  static void ChannelwiseRest(const T* x, const Place& row, const Place* steps, int64_t depth, const T* panel, T* out,
                              int64_t column, int64_t columns, const Finish<T>& finish) {
    for (int64_t j = column; j < columns; j++) {
      Vector sum = {};
      for (int64_t k = 0; k < depth; k++) sum[0] += x[row.x + steps[k].x + j] * panel[steps[k].other + j];
      StorePart(sum, out + row.other + j, 1, j, finish);
    }
  }

  static void MultiplyChannelwise(const T* x, const Place* rows, int64_t row_count, const Place* steps, int64_t depth,
                                  const T* panel, T* out, int64_t columns, const Finish<T>& finish) {
    const int64_t whole = columns / kLanes * kLanes;
    for (int64_t i = 0, step; i < row_count; i += step) {
      const bool several = row_count - i >= kChannelwiseRows;
      step = several ? kChannelwiseRows : 1;
      const auto tile = several ? &ChannelwiseTile<kChannelwiseRows> : &ChannelwiseTile<1>;
      for (int64_t j = 0; j < whole; j += kLanes) tile(x, rows + i, steps, depth, panel, out, j, finish);
      for (int64_t r = i; r < i + step; r++) {
        ChannelwiseRest(x, rows[r], steps, depth, panel, out, whole, columns, finish);
      }
    }
  }

  // ---- the gradient of a bias --------------------------------------------------------------------------------------

  static constexpr int64_t kSums = 4;  // at once, for a sum must wait for the one before

  static void SumColumns(const T* panel, const Place* steps, int64_t depth, int64_t columns, T* out) {
    const Finish<T> finish{true, nullptr, false};
    int64_t j = 0;
    for (; j + kLanes <= columns; j += kLanes) {
      Vector sum[kSums] = {};
      int64_t k = 0;
      for (; k + kSums <= depth; k += kSums) {
#pragma GCC unroll 4
        for (int64_t i = 0; i < kSums; i++) sum[i] += Load(panel + steps[k + i].other + j);
      }
      for (; k < depth; k++) sum[0] += Load(panel + steps[k].other + j);
      StoreVector((sum[0] + sum[1]) + (sum[2] + sum[3]), out + j, j, finish);
    }
    for (; j < columns; j++) {
      T sum = 0;
      for (int64_t k = 0; k < depth; k++) sum += panel[steps[k].other + j];
      out[j] += sum;
    }
  }

  static ConvolutionLoops<T> Table() {
    return {kTileRows, kTileColumns, kLanes, &Copy, &Multiply, &MultiplyChannelwise, &SumColumns};
  }
};

}  // namespace

namespace NEEDLE_ISA {

template <typename T>
ConvolutionLoops<T> LoopsOfConvolution() {
  return Loops<T>::Table();
}
template ConvolutionLoops<float> LoopsOfConvolution<float>();
template ConvolutionLoops<double> LoopsOfConvolution<double>();

}  // namespace NEEDLE_ISA
}  // namespace needle
