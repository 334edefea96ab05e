// The micro-kernels of convolution.  A tile of sums stays in registers while k runs; one factor comes from a packed
// panel, the other, number by number, from wherever in the image it lies: nothing of the image is packed.
#include "../convolution_loops.h"

#include "vector.h"

namespace needle {
namespace {

constexpr int64_t kTileRows = kRegisters == 32 ? 12 : 6, kVectors = 2;  // the sums fit into the registers
constexpr int64_t kChannelwiseRows = 4;

int64_t Smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

template <typename T>
struct Loops : Simd<T> {
  using typename Simd<T>::Vector;
  using Simd<T>::kLanes, Simd<T>::Load, Simd<T>::Store;

  static constexpr int64_t kTileColumns = kVectors * kLanes;

  // ---- packing -----------------------------------------------------------------------------------------------------

  static void Pack(const T* from, int64_t row_stride, int64_t column_stride, int64_t rows, int64_t columns, T* panels,
                   int64_t panel_stride) {
    for (int64_t first = 0; first < columns; first += kTileColumns, panels += panel_stride) {
      for (int64_t v = 0; v < kTileColumns; v += kLanes) {
        const T* corner = from + (first + v) * column_stride;
        const int64_t width = Smaller(kLanes, columns - first - v);
        if (width == kLanes && column_stride == 1) {
          for (int64_t k = 0; k < rows; k++) Store(panels + k * kTileColumns + v, Load(corner + k * row_stride));
        } else {
          PackPart(corner, row_stride, column_stride, rows, width, panels + v);
        }
      }
    }
  }

  /// `width` columns, some of them or none, of one vector of a panel.
  static void PackPart(const T* from, int64_t row_stride, int64_t column_stride, int64_t rows, int64_t width,
                       T* panel) {
    for (int64_t k = 0; k < rows; k++) {
      for (int64_t j = 0; j < kLanes; j++) {
        panel[k * kTileColumns + j] = j < width ? from[k * row_stride + j * column_stride] : T(0);
      }
    }
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

  /// A tile of `row_count` ≤ kTileRows rows and `columns` ≤ kUsed vectors.
  template <int64_t kUsed>
  static void MultiplyTile(const T* x, const int64_t* rows, int64_t row_count, const int64_t* depths, int64_t depth,
                           const T* panel, T* out, const int64_t* outs, int64_t columns, const Finish<T>& finish) {
    const T* row[kTileRows];
    for (int64_t i = 0; i < kTileRows; i++) row[i] = x + rows[i < row_count ? i : 0];
    Vector sum[kTileRows][kUsed] = {};
    for (int64_t k = 0; k < depth; k++, panel += kTileColumns) {
      const int64_t at = depths[k];
      Vector b[kUsed];
#pragma GCC unroll 4
      for (int64_t v = 0; v < kUsed; v++) b[v] = Load(panel + v * kLanes);
#pragma GCC unroll 16
      for (int64_t i = 0; i < kTileRows; i++) {
        const Vector a = row[i][at] - Vector{};  // x - 0 is x, but 0 + x would be computed: it differs for -0
#pragma GCC unroll 4
        for (int64_t v = 0; v < kUsed; v++) sum[i][v] += a * b[v];
      }
    }
#pragma GCC unroll 16
    for (int64_t i = 0; i < kTileRows; i++) {
      if (i >= row_count) break;
#pragma GCC unroll 4
      for (int64_t v = 0; v < kUsed; v++) {
        StoreSome(sum[i][v], out + outs[i] + v * kLanes, columns - v * kLanes, v * kLanes, finish);
      }
    }
  }

  static void Multiply(const T* x, const int64_t* rows, int64_t row_count, const int64_t* depths, int64_t depth,
                       const T* panel, T* out, const int64_t* outs, int64_t columns, const Finish<T>& finish) {
    const auto tile = columns > kLanes ? &MultiplyTile<kVectors> : &MultiplyTile<1>;
    for (int64_t i = 0; i < row_count; i += kTileRows) {
      tile(x, rows + i, Smaller(kTileRows, row_count - i), depths, depth, panel, out, outs + i, columns, finish);
    }
  }

  // ---- depthwise ---------------------------------------------------------------------------------------------------

  /// Some rows, and of the columns one vector.
  template <int64_t kRows>
  static void ChannelwiseTile(const T* x, const int64_t* rows, const int64_t* depths, int64_t depth, const T* panel,
                              int64_t panel_stride, T* out, const int64_t* outs, int64_t column,
                              const Finish<T>& finish) {
    Vector sum[kRows] = {};
    for (int64_t k = 0; k < depth; k++) {
      const Vector b = Load(panel + k * panel_stride + column);
      for (int64_t i = 0; i < kRows; i++) sum[i] += Load(x + rows[i] + depths[k] + column) * b;
    }
    for (int64_t i = 0; i < kRows; i++) StoreVector(sum[i], out + outs[i] + column, column, finish);
  }

  static void ChannelwiseRest(const T* x, int64_t row, const int64_t* depths, int64_t depth, const T* panel,
                              int64_t panel_stride, T* out, int64_t column, const Finish<T>& finish) {
    for (int64_t j = column; j < panel_stride; j++) {
      Vector sum = {};
      for (int64_t k = 0; k < depth; k++) sum[0] += x[row + depths[k] + j] * panel[k * panel_stride + j];
      StorePart(sum, out + j, 1, j, finish);
    }
  }

  static void MultiplyChannelwise(const T* x, const int64_t* rows, int64_t row_count, const int64_t* depths,
                                  int64_t depth, const T* panel, T* out, const int64_t* outs, int64_t columns,
                                  const Finish<T>& finish) {
    const int64_t whole = columns / kLanes * kLanes;
    for (int64_t i = 0, step; i < row_count; i += step) {
      const bool several = row_count - i >= kChannelwiseRows;
      step = several ? kChannelwiseRows : 1;
      const auto tile = several ? &ChannelwiseTile<kChannelwiseRows> : &ChannelwiseTile<1>;
      for (int64_t j = 0; j < whole; j += kLanes) {
        tile(x, rows + i, depths, depth, panel, columns, out, outs + i, j, finish);
      }
      for (int64_t r = i; r < i + step; r++) {
        ChannelwiseRest(x, rows[r], depths, depth, panel, columns, out + outs[r], whole, finish);
      }
    }
  }

  // ---- the gradient of a bias --------------------------------------------------------------------------------------

  static void SumPanel(const T* panel, int64_t depth, int64_t columns, T* out, bool accumulate) {
    Vector sum[kVectors] = {};
    for (int64_t k = 0; k < depth; k++, panel += kTileColumns) {
      for (int64_t v = 0; v < kVectors; v++) sum[v] += Load(panel + v * kLanes);
    }
    const Finish<T> finish{accumulate, nullptr, false};
    for (int64_t v = 0; v * kLanes < columns; v++) {
      StoreSome(sum[v], out + v * kLanes, columns - v * kLanes, v * kLanes, finish);
    }
  }

  static ConvolutionLoops<T> Table() {
    return {kTileRows, kTileColumns, &Pack, &Multiply, &MultiplyChannelwise, &SumPanel};
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
