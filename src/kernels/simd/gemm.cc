// The micro-kernel of the matrix product.  The tile of kTileRows x kVectors vectors stays in registers while k runs;
// each step loads kVectors vectors of b and broadcasts kTileRows numbers of a.
#include "../gemm.h"

#include "vector.h"

namespace needle {
namespace {

constexpr int64_t kTileRows = kRegisters == 32 ? 12 : 6, kVectors = 2;  // so many sums stay in registers

template <typename T>
struct Kernel : Simd<T> {
  using typename Simd<T>::Vector;
  using Simd<T>::kLanes, Simd<T>::Load, Simd<T>::Store;

  static constexpr int64_t kTileColumns = kVectors * kLanes;

  static int64_t Smaller(int64_t a, int64_t b) { return a < b ? a : b; }

  // ---- packing: strips and panels are the same to it
  // ------------------------------------------------------------------

  // kQuad items of kQuad steps are transposed in registers
  static constexpr int64_t kQuad = 16 / static_cast<int64_t>(sizeof(T));
  typedef T Quad __attribute__((vector_size(16)));
  typedef T UnalignedQuad __attribute__((vector_size(16), aligned(sizeof(T))));

  static Quad LoadQuad(const T* from) { return *reinterpret_cast<const UnalignedQuad*>(from); }
  static void StoreQuad(T* to, Quad value) { *reinterpret_cast<UnalignedQuad*>(to) = value; }

  /// kQuad rows, `stride` apart, of kQuad elements -> kQuad rows, `width` apart.  If there are fewer, the last is taken
  /// several times.
  static void Transpose(const float* from, int64_t stride, int64_t rows, float* to, int64_t width) {
    const Quad a = LoadQuad(from), b = LoadQuad(from + Smaller(1, rows - 1) * stride),
               c = LoadQuad(from + Smaller(2, rows - 1) * stride), d = LoadQuad(from + Smaller(3, rows - 1) * stride);
    const Quad ab_low = NEEDLE_SHUFFLE(a, b, 0, 4, 1, 5), ab_high = NEEDLE_SHUFFLE(a, b, 2, 6, 3, 7);
    const Quad cd_low = NEEDLE_SHUFFLE(c, d, 0, 4, 1, 5), cd_high = NEEDLE_SHUFFLE(c, d, 2, 6, 3, 7);
    StoreQuad(to, NEEDLE_SHUFFLE(ab_low, cd_low, 0, 1, 4, 5));
    StoreQuad(to + width, NEEDLE_SHUFFLE(ab_low, cd_low, 2, 3, 6, 7));
    StoreQuad(to + 2 * width, NEEDLE_SHUFFLE(ab_high, cd_high, 0, 1, 4, 5));
    StoreQuad(to + 3 * width, NEEDLE_SHUFFLE(ab_high, cd_high, 2, 3, 6, 7));
  }

  static void Transpose(const double* from, int64_t stride, int64_t rows, double* to, int64_t width) {
    const Quad a = LoadQuad(from), b = LoadQuad(from + Smaller(1, rows - 1) * stride);
    StoreQuad(to, NEEDLE_SHUFFLE(a, b, 0, 2));
    StoreQuad(to + width, NEEDLE_SHUFFLE(a, b, 1, 3));
  }

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
      const int64_t first =
          i && i + kQuad > items ? items - kQuad : i;  // where items is no multiple, two of them overlap
      Transpose(from + first * item_stride, item_stride, items - first, to + first, kWidth);
    }
  }

  template <int64_t kWidth>
  static void CopyRow(const T* from, int64_t items, T* to) {
    int64_t i = 0;
    if (kWidth % kLanes == 0 && items == kWidth) {
      for (; i < kWidth; i += kLanes) Store(to + i, Load(from + i));
    }
    for (; i + kQuad <= items; i += kQuad) StoreQuad(to + i, LoadQuad(from + i));
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
    typedef T Wide __attribute__((vector_size(kBytes)));
    typedef T Unaligned __attribute__((vector_size(kBytes), aligned(sizeof(T))));
    constexpr int64_t kWide = kBytes / static_cast<int64_t>(sizeof(T)), kWidth = kVecs * kWide;

#pragma GCC unroll 16
    for (int64_t i = 0; i < kRows; i++) __builtin_prefetch(out + i * stride, 1);
    Wide sum[kRows][kVecs] = {};
    for (int64_t k = 0; k < depth; k++, strip += kTileRows, panel += panel_stride) {
      Wide b[kVecs];
#pragma GCC unroll 4
      for (int64_t v = 0; v < kVecs; v++) b[v] = *reinterpret_cast<const Unaligned*>(panel + v * kWide);
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
      const auto load = [](const T* from) { return *reinterpret_cast<const Unaligned*>(from); };
      if (epilogue.accumulate) for_each([&](Wide& all, int64_t i, int64_t j) { all += load(out + i * stride + j); });
      if (epilogue.bias) for_each([&](Wide& all, int64_t, int64_t j) { all += load(epilogue.bias + j); });
      if (epilogue.residual) {
        for_each([&](Wide& all, int64_t i, int64_t j) {
          all += load(epilogue.residual + i * epilogue.residual_stride + j);
        });
      }
      if (epilogue.relu) for_each([](Wide& all, int64_t, int64_t) { all = ((all > 0) | (all != all)) ? all : Wide{}; });
      for_each([&](Wide& all, int64_t i, int64_t j) { *reinterpret_cast<Unaligned*>(out + i * stride + j) = all; });
    } else {
      alignas(64) T sums[kRows * kLanes] = {};
#pragma GCC unroll 16
      for (int64_t i = 0; i < kRows; i++) *reinterpret_cast<Unaligned*>(sums + i * kLanes) = sum[i][0];
      Finish(sums, kRows, columns, out, stride, epilogue);
    }
  }

  /// Tiles at the edge: `columns`, less than a vector, of rows of sums.
  static __attribute__((noinline)) void Finish(const T* sums, int64_t rows, int64_t columns, T* out, int64_t stride,
                                               const Epilogue<T>& epilogue) {
    for (int64_t i = 0; i < rows; i++, out += stride) {
      Vector sum = Load(sums + i * kLanes);
      if (epilogue.accumulate) sum += LoadSome(out, columns);
      if (epilogue.bias) sum += LoadSome(epilogue.bias, columns);
      if (epilogue.residual) sum += LoadSome(epilogue.residual + i * epilogue.residual_stride, columns);
      if (epilogue.relu) sum = ((sum > 0) | (sum != sum)) ? sum : Vector{};  // a NaN stays
      StoreSome(out, sum, columns);
    }
  }

  /// `count` elements (or a vector full), and zeros.
  static Vector LoadSome(const T* from, int64_t count) {
    if (count >= kLanes) return Load(from);
    T some[kLanes] = {};
    CopySome(from, count, some);
    return Load(some);
  }

  static void StoreSome(T* to, Vector value, int64_t count) {
    if (count >= kLanes) return Store(to, value);
    T some[kLanes];
    Store(some, value);
    CopySome(some, count, to);
  }

  /// `count` elements, fewer than a vector has: by halves, quarters, … of it.
  template <int64_t kCount = kLanes / 2>
  static void CopySome(const T* from, int64_t count, T* to) {
    if (count & kCount) __builtin_memcpy(to, from, kCount * sizeof(T)), from += kCount, to += kCount;
    if constexpr (kCount > 1) CopySome<kCount / 2>(from, count, to);
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

  // ---- few rows or columns: each number of the other matrix is used so seldom that packing it would cost more
  // ----------

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
    Vector sum = LoadSome(out + j, columns - j);
    for (int64_t k = 0; k < kRows; k++) sum += a[k] * LoadSome(b + k * b_stride + j, columns - j);
    StoreSome(out + j, sum, columns - j);
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
    if (k < inner && inner < kLanes) add(k, [&](const T* from) { return LoadSome(from, inner - k); });
    if (k < inner && inner > kLanes) add(inner - kLanes, [&](const T* from) { return LastOf(Load(from), inner - k); });
#pragma GCC unroll 8
    for (int64_t i = 0; i < kRows; i++) {
#pragma GCC unroll 8
      for (int64_t j = 0; j < kColumns; j++) out[i * kColumns + j] = SumOfLanes(sum[i][j]);
    }
  }

  /// Zeros, and the last `count` elements.
  static Vector LastOf(Vector value, int64_t count) {
    Vector lane;
    for (int64_t i = 0; i < kLanes; i++) lane[i] = static_cast<T>(i);
    return lane >= static_cast<T>(kLanes - count) ? value : Vector{};
  }

  static T SumOfLanes(Vector value) {
    T lanes[kLanes];
    Store(lanes, value);
    for (int64_t width = kLanes / 2; width > 0; width /= 2) {
      for (int64_t j = 0; j < width; j++) lanes[j] += lanes[j + width];
    }
    return lanes[0];
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
