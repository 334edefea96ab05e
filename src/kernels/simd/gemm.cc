// The micro-kernel of the matrix product.  The tile of kTileRows x kVectors vectors stays in registers while k runs;
// each step loads kVectors vectors of b and broadcasts kTileRows numbers of a.
#include "../gemm.h"

#include "fold.h"
#include "quads.h"

namespace needle {
namespace {

constexpr int64_t kTileRows = kRegisters == 32 ? 12 : 6, kVectors = 2;  // so many sums stay in registers

template <typename T>
struct Kernel : Loops<T> {
  using typename Simd<T>::Vector;
  using Simd<T>::kLanes, Simd<T>::Load, Simd<T>::Store;
  using Loops<T>::LoadFirst, Loops<T>::StoreFirst;

  static constexpr int64_t kTileColumns = kVectors * kLanes;
  static constexpr int64_t kQuad = Quads<T>::kQuad;

  // ---- packing: strips and panels are the same to it ----------------------------------------------------------------

  /// `items` of kWidth items, each with `depth` steps, -> depth rows of kWidth elements.  What follows the last item in
  /// its vector is some number or other, which is multiplied, but never stored; what is behind that nobody reads.
  template <int64_t kWidth>
  static void PackOne(const T* from, int64_t item_stride, int64_t step_stride, int64_t items, int64_t depth, T* to) {
    if constexpr (kWidth % kLanes == 0) {
      for (int64_t k = 0; items < kWidth && k < depth; k++) Store(to + k * kWidth + items / kLanes * kLanes, Vector{});
    }
    if (step_stride == 1) {
      PackByTransposing<kWidth>(from, item_stride, items, depth, to);
    } else if (item_stride == 1) {
      for (int64_t k = 0; k < depth; k++) CopyRow<kWidth>(from + k * step_stride, items, to + k * kWidth);
    } else {
      PackElements<kWidth>(from, item_stride, step_stride, items, 0, depth, to);
    }
  }

  template <int64_t kWidth>
  static void PackElements(const T* from, int64_t item_stride, int64_t step_stride, int64_t items, int64_t k,
                           int64_t depth, T* to) {
    for (; k < depth; k++) {
      for (int64_t i = 0; i < items; i++) to[k * kWidth + i] = from[i * item_stride + k * step_stride];
    }
  }

  template <int64_t kWidth>
  static void PackByTransposing(const T* from, int64_t item_stride, int64_t items, int64_t depth, T* to) {
    const int64_t steps = depth - depth % kQuad;
    for (int64_t k = 0; k < steps; k += kQuad) {
      if (items == kWidth) {
        TransposeQuads<kWidth>(from + k, item_stride, kWidth, to + k * kWidth);
      } else {
        TransposeQuads<kWidth>(from + k, item_stride, items, to + k * kWidth);
      }
    }
    PackElements<kWidth>(from, item_stride, 1, items, steps, depth, to);
  }

  template <int64_t kWidth>
  static inline __attribute__((always_inline)) void TransposeQuads(const T* from, int64_t item_stride, int64_t items,
                                                                   T* to) {
#pragma GCC unroll 16
    for (int64_t i = 0; i < items; i += kQuad) {
      // where items is no multiple, two of them overlap
      const int64_t first = i && i + kQuad > items ? items - kQuad : i;
      Quads<T>::Transpose(from + first * item_stride, item_stride, items - first, to + first, kWidth);
    }
  }

  template <int64_t kWidth>
  static void CopyRow(const T* from, int64_t items, T* to) {
    int64_t i = 0;
    if (kWidth % kLanes == 0 && items == kWidth) {
      for (; i < kWidth; i += kLanes) Store(to + i, Load(from + i));
    }
    for (; i + kQuad <= items; i += kQuad) Quads<T>::Store(to + i, Quads<T>::Load(from + i));
    for (; i < items; i++) to[i] = from[i];
  }

  static void PackA(const Matrix<T>& a, int64_t rows, int64_t depth, T* packed) {
    for (int64_t i = 0; i < rows; i += kTileRows, packed += kTileRows * depth) {
      PackOne<kTileRows>(a.data + i * a.row_stride, a.row_stride, a.column_stride, Smaller(kTileRows, rows - i), depth,
                         packed);
    }
  }

  static void PackB(const Matrix<T>& b, int64_t depth, int64_t columns, T* packed) {
    for (int64_t j = 0; j < columns; j += kTileColumns, packed += kTileColumns * depth) {
      PackOne<kTileColumns>(b.data + j * b.column_stride, b.column_stride, b.row_stride,
                            Smaller(kTileColumns, columns - j), depth, packed);
    }
  }

  // ---- the tile -----------------------------------------------------------------------------------------------------

  /// A tile of kRows rows, whose `columns` fill kVecs vectors of kBytes, or less.
  template <int64_t kRows, int64_t kVecs, int64_t kBytes>
  static void MultiplyTile(const T* strip, const T* panel, int64_t panel_stride, int64_t depth, int64_t columns, T* out,
                           int64_t stride, const Epilogue<T>& epilogue) {
    using Part = Simd<T, kBytes>;
    using Wide = typename Part::Vector;
    constexpr int64_t kWide = Part::kLanes, kWidth = kVecs * kWide;

#pragma GCC unroll 16
    for (int64_t i = 0; i < kRows; i++) __builtin_prefetch(out + i * stride, 1);
    Wide sum[kRows][kVecs] = {};
    for (int64_t k = 0; k < depth; k++, strip += kTileRows, panel += panel_stride) {
      Wide b[kVecs];
#pragma GCC unroll 4
      for (int64_t v = 0; v < kVecs; v++) b[v] = Part::Load(panel + v * kWide);
#pragma GCC unroll 16
      for (int64_t i = 0; i < kRows; i++) {
        const Wide a = strip[i] - Wide{};  // x - 0 is x, but 0 + x would be computed: it differs for -0
#pragma GCC unroll 4
        for (int64_t v = 0; v < kVecs; v++) sum[i][v] += a * b[v];
      }
    }

    if (kVecs > 1 || columns == kWidth) {
      const auto for_each = [&](const auto& change) __attribute__((always_inline)) {
#pragma GCC unroll 16
        for (int64_t i = 0; i < kRows; i++) {
#pragma GCC unroll 4
          for (int64_t v = 0; v < kVecs; v++) change(sum[i][v], i, v * kWide);
        }
      };
      if (epilogue.accumulate) {
        for_each([&](Wide& all, int64_t i, int64_t j) { all += Part::Load(out + i * stride + j); });
      }
      if (epilogue.bias) for_each([&](Wide& all, int64_t, int64_t j) { all += Part::Load(epilogue.bias + j); });
      if (epilogue.residual) {
        for_each([&](Wide& all, int64_t i, int64_t j) {
          all += Part::Load(epilogue.residual + i * epilogue.residual_stride + j);
        });
      }
      if (epilogue.relu) for_each([](Wide& all, int64_t, int64_t) { all = ((all > 0) | (all != all)) ? all : Wide{}; });
      for_each([&](Wide& all, int64_t i, int64_t j) { Part::Store(out + i * stride + j, all); });
    } else {
      alignas(64) T sums[kRows * kLanes] = {};
#pragma GCC unroll 16
      for (int64_t i = 0; i < kRows; i++) Part::Store(sums + i * kLanes, sum[i][0]);
      Finish(sums, kRows, columns, out, stride, epilogue);
    }
  }

  /// Tiles at the edge: `columns`, less than a vector, of rows of sums.
  static __attribute__((noinline)) void Finish(const T* sums, int64_t rows, int64_t columns, T* out, int64_t stride,
                                               const Epilogue<T>& epilogue) {
    for (int64_t i = 0; i < rows; i++, out += stride) {
      Vector sum = Load(sums + i * kLanes);
      if (epilogue.accumulate) sum += LoadFirst(out, columns);
      if (epilogue.bias) sum += LoadFirst(epilogue.bias, columns);
      if (epilogue.residual) sum += LoadFirst(epilogue.residual + i * epilogue.residual_stride, columns);
      if (epilogue.relu) sum = ((sum > 0) | (sum != sum)) ? sum : Vector{};  // a NaN stays
      StoreFirst(out, sum, columns);
    }
  }

  // ---- all tiles of a block -----------------------------------------------------------------------------------------

  using TileFunction = void (*)(const T*, const T*, int64_t, int64_t, int64_t, T*, int64_t, const Epilogue<T>&);

  /// The tile for so many rows and columns, which are a whole panel, or at most a vector.
  static TileFunction TileFor(int64_t rows, int64_t columns) {
    constexpr int64_t kHalf = kVectorBytes > 16 ? kVectorBytes / 2 : 16;
    if (columns == kTileColumns) return TileOf<kVectors, kVectorBytes>(rows);
    return columns > kLanes / 2 ? TileOf<1, kVectorBytes>(rows) : TileOf<1, kHalf>(rows);
  }

  template <int64_t kVecs, int64_t kBytes, int64_t kRows = kTileRows>
  static TileFunction TileOf(int64_t rows) {
    if constexpr (kRows > 1) {
      if (rows < kRows) return TileOf<kVecs, kBytes, kRows - 1>(rows);
    }
    return &MultiplyTile<kRows, kVecs, kBytes>;
  }

  static void Multiply(const T* strips, const T* panels, const GemmSizes& sizes, T* out, int64_t out_stride,
                       const Epilogue<T>& epilogue) {
    for (int64_t j = 0; j < sizes.columns;) {
      const int64_t left = sizes.columns - j, columns = left >= kTileColumns ? kTileColumns : Smaller(kLanes, left);
      const T* panel = panels + j / kTileColumns * kTileColumns * sizes.inner + j % kTileColumns;
      MultiplyPanel(strips, panel, kTileColumns, {sizes.rows, sizes.inner, columns}, out + j, out_stride,
                    Moved(epilogue, 0, j));
      j += columns;
    }
  }

  static void MultiplyInPlace(const T* strips, const Matrix<T>& b, const GemmSizes& sizes, T* out, int64_t out_stride,
                              const Epilogue<T>& epilogue) {
    for (int64_t j = 0; j < sizes.columns; j += kTileColumns) {
      MultiplyPanel(strips, b.data + j, b.row_stride, {sizes.rows, sizes.inner, kTileColumns}, out + j, out_stride,
                    Moved(epilogue, 0, j));
    }
  }

  /// Tile by tile.
  static void MultiplyPanel(const T* strips, const T* panel, int64_t panel_stride, const GemmSizes& sizes, T* out,
                            int64_t out_stride, const Epilogue<T>& epilogue) {
    const int64_t last = sizes.rows % kTileRows, whole = sizes.rows - last;
    const auto multiply = [&](TileFunction tile, int64_t i) {
      tile(strips + i * sizes.inner, panel, panel_stride, sizes.inner, sizes.columns, out + i * out_stride, out_stride,
           Moved(epilogue, i, 0));
    };
    const TileFunction tile = TileFor(kTileRows, sizes.columns);
    for (int64_t i = 0; i < whole; i += kTileRows) multiply(tile, i);
    if (last) multiply(TileFor(last, sizes.columns), whole);
  }

  static Epilogue<T> Moved(Epilogue<T> epilogue, int64_t row, int64_t column) {
    if (epilogue.bias) epilogue.bias += column;
    if (epilogue.residual) epilogue.residual += row * epilogue.residual_stride + column;
    return epilogue;
  }

  // ---- few rows or columns: each number of the other matrix is used too seldom to pack it ---------------------------

  static void MultiplyRow(const T* row, int64_t row_stride, const Matrix<T>& b, int64_t inner, int64_t columns,
                          T* out) {
    for (int64_t j = 0; j < columns; j++) out[j] = 0;
    int64_t k = 0;
    for (; k + 8 <= inner; k += 8) {
      AddRows<8>(row + k * row_stride, row_stride, b.data + k * b.row_stride, b.row_stride, columns, out);
    }
    for (; k < inner; k++) {
      AddRows<1>(row + k * row_stride, row_stride, b.data + k * b.row_stride, b.row_stride, columns, out);
    }
  }

  /// Add kRows rows of b to out, each times a number: they are read from left to right, as memory likes it.
  template <int64_t kRows>
  static void AddRows(const T* row, int64_t row_stride, const T* b, int64_t b_stride, int64_t columns, T* out) {
    Vector a[kRows];
#pragma GCC unroll 8
    for (int64_t k = 0; k < kRows; k++) a[k] = row[k * row_stride] - Vector{};
    int64_t j = 0;
    for (; j + kLanes <= columns; j += kLanes) {
      Vector sum = Load(out + j);
#pragma GCC unroll 8
      for (int64_t k = 0; k < kRows; k++) sum += a[k] * Load(b + k * b_stride + j);
      Store(out + j, sum);
    }
    if (j == columns) return;
    Vector sum = LoadFirst(out + j, columns - j);
    for (int64_t k = 0; k < kRows; k++) sum += a[k] * LoadFirst(b + k * b_stride + j, columns - j);
    StoreFirst(out + j, sum, columns - j);
  }

  template <int64_t kColumns = kMostDots>
  static void MultiplyDots(const Matrix<T>& a, const Matrix<T>& b, const GemmSizes& sizes, T* out) {
    if constexpr (kColumns > 1) {
      if (sizes.columns < kColumns) return MultiplyDots<kColumns - 1>(a, b, sizes, out);
    }
    constexpr int64_t kSums = kRegisters == 32 ? 20 : 8, kMost = kRegisters / 4;  // all stay in registers
    constexpr int64_t kRows = kSums / kColumns < kMost ? kSums / kColumns : kMost;
    int64_t i = 0;
    for (; i + kRows <= sizes.rows; i += kRows) {
      DotTile<kRows, kColumns>(a.data + i * a.row_stride, a.row_stride, b.data, b.column_stride, sizes.inner,
                               out + i * kColumns);
    }
    for (; i < sizes.rows; i++) {
      DotTile<1, kColumns>(a.data + i * a.row_stride, a.row_stride, b.data, b.column_stride, sizes.inner,
                           out + i * kColumns);
    }
  }

  /// Σ a[k] b[k] for kRows rows a and kColumns columns b: each lane of a vector adds up every kLanes-th product.
  template <int64_t kRows, int64_t kColumns>
  static void DotTile(const T* a, int64_t a_stride, const T* b, int64_t b_stride, int64_t inner, T* out) {
    Vector sum[kRows][kColumns] = {};
    const auto add = [&](int64_t k, const auto& load) __attribute__((always_inline)) {
      Vector left[kRows];
#pragma GCC unroll 8
      for (int64_t i = 0; i < kRows; i++) left[i] = load(a + i * a_stride + k);
#pragma GCC unroll 8
      for (int64_t j = 0; j < kColumns; j++) {
        const Vector right = load(b + j * b_stride + k);
#pragma GCC unroll 8
        for (int64_t i = 0; i < kRows; i++) sum[i][j] += left[i] * right;
      }
    };
    int64_t k = 0;
    for (; k + kLanes <= inner; k += kLanes) add(k, [](const T* from) { return Load(from); });
    if (k < inner && inner < kLanes) add(k, [&](const T* from) { return LoadFirst(from, inner - k); });
    if (k < inner && inner > kLanes) add(inner - kLanes, [&](const T* from) { return LastOf(Load(from), inner - k); });
#pragma GCC unroll 8
    for (int64_t i = 0; i < kRows; i++) {
#pragma GCC unroll 8
      for (int64_t j = 0; j < kColumns; j++) out[i * kColumns + j] = Folds<T>::template FoldLanes<Sum>(sum[i][j]);
    }
  }

  /// Zeros, and the last `count` elements.
  static Vector LastOf(Vector value, int64_t count) {
    Vector lane;
    for (int64_t i = 0; i < kLanes; i++) lane[i] = static_cast<T>(i);
    return lane >= static_cast<T>(kLanes - count) ? value : Vector{};
  }

  static GemmKernels<T> Table() {
    return {kTileRows, kTileColumns, &PackA, &PackB, &Multiply, &MultiplyInPlace, &MultiplyRow, &MultiplyDots<>};
  }
};

}  // namespace

namespace NEEDLE_ISA {

template <typename T>
GemmKernels<T> TableOfGemm() {
  return Kernel<T>::Table();
}
template GemmKernels<float> TableOfGemm<float>();
template GemmKernels<double> TableOfGemm<double>();

}  // namespace NEEDLE_ISA
}  // namespace needle
