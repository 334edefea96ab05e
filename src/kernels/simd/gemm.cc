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

  /// kQuad rows, `stride` apart, of kQuad elements -> kQuad rows, `width` apart.
  static void Transpose(const float* from, int64_t stride, float* to, int64_t width) {
    const Quad a = LoadQuad(from), b = LoadQuad(from + stride), c = LoadQuad(from + 2 * stride),
               d = LoadQuad(from + 3 * stride);
    const Quad ab_low = NEEDLE_SHUFFLE(a, b, 0, 4, 1, 5), ab_high = NEEDLE_SHUFFLE(a, b, 2, 6, 3, 7);
    const Quad cd_low = NEEDLE_SHUFFLE(c, d, 0, 4, 1, 5), cd_high = NEEDLE_SHUFFLE(c, d, 2, 6, 3, 7);
    StoreQuad(to, NEEDLE_SHUFFLE(ab_low, cd_low, 0, 1, 4, 5));
    StoreQuad(to + width, NEEDLE_SHUFFLE(ab_low, cd_low, 2, 3, 6, 7));
    StoreQuad(to + 2 * width, NEEDLE_SHUFFLE(ab_high, cd_high, 0, 1, 4, 5));
    StoreQuad(to + 3 * width, NEEDLE_SHUFFLE(ab_high, cd_high, 2, 3, 6, 7));
  }

  static void Transpose(const double* from, int64_t stride, double* to, int64_t width) {
    const Quad a = LoadQuad(from), b = LoadQuad(from + stride);
    StoreQuad(to, NEEDLE_SHUFFLE(a, b, 0, 2));
    StoreQuad(to + width, NEEDLE_SHUFFLE(a, b, 1, 3));
  }

  /// `items` of kWidth items, each with `depth` steps, -> depth rows of kWidth elements.  After the last item come
  /// zeros to the end of its vector; what is behind that nobody reads.
  template <int64_t kWidth>
  static void PackOne(const T* from, int64_t item_stride, int64_t step_stride, int64_t items, int64_t depth, T* to) {
    if (items < kWidth) {
      const int64_t filled = Smaller(kWidth, (items + kLanes - 1) / kLanes * kLanes);
      for (int64_t k = 0; k < depth; k++) {
        for (int64_t i = items; i < filled; i++) to[k * kWidth + i] = 0;
      }
    }
    if (step_stride == 1) {
      PackByTransposing<kWidth>(from, item_stride, items, depth, to);
    } else if (item_stride == 1) {
      for (int64_t k = 0; k < depth; k++) CopyRow<kWidth>(from + k * step_stride, items, to + k * kWidth);
    } else {
      PackElements<kWidth>(from, item_stride, step_stride, 0, items, 0, depth, to);
    }
  }

  template <int64_t kWidth>
  static void PackElements(const T* from, int64_t item_stride, int64_t step_stride, int64_t item, int64_t items,
                           int64_t k, int64_t depth, T* to) {
    for (; k < depth; k++) {
      for (int64_t i = item; i < items; i++) to[k * kWidth + i] = from[i * item_stride + k * step_stride];
    }
  }

  template <int64_t kWidth>
  static void PackByTransposing(const T* from, int64_t item_stride, int64_t items, int64_t depth, T* to) {
    const int64_t whole = items - items % kQuad, steps = depth - depth % kQuad;
    for (int64_t k = 0; k < steps; k += kQuad) {
      if (items == kWidth) {
        TransposeQuads<kWidth>(from + k, item_stride, to + k * kWidth);
      } else {
        for (int64_t i = 0; i < whole; i += kQuad) {
          Transpose(from + i * item_stride + k, item_stride, to + k * kWidth + i, kWidth);
        }
      }
    }
    if (items < kWidth) PackElements<kWidth>(from, item_stride, 1, whole, items, 0, steps, to);
    PackElements<kWidth>(from, item_stride, 1, 0, items, steps, depth, to);
  }

  template <int64_t kWidth>
  static void TransposeQuads(const T* from, int64_t item_stride, T* to) {
#pragma GCC unroll 16
    for (int64_t i = 0; i < kWidth; i += kQuad) {
      const int64_t first = Smaller(i, kWidth - kQuad);  // where kWidth is no multiple, two of them overlap
      Transpose(from + first * item_stride, item_stride, to + first, kWidth);
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
  static void MultiplyTile(const T* strip, const T* panel, int64_t depth, int64_t columns, T* out, int64_t stride,
                           const Epilogue<T>& epilogue) {
    typedef T Wide __attribute__((vector_size(kBytes)));
    typedef T Unaligned __attribute__((vector_size(kBytes), aligned(sizeof(T))));
    constexpr int64_t kWide = kBytes / static_cast<int64_t>(sizeof(T)), kWidth = kVecs * kWide;

#pragma GCC unroll 16
    for (int64_t i = 0; i < kRows; i++) __builtin_prefetch(out + i * stride, 1);
    Wide sum[kRows][kVecs] = {};
    for (int64_t k = 0; k < depth; k++, strip += kTileRows, panel += kTileColumns) {
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

    const bool direct = columns == kWidth && !epilogue.bias && !epilogue.residual && !epilogue.relu;
    alignas(64) T sums[kRows * kWidth];  // of the others a copy: `sum` itself must not need an address
    T* to = direct ? out : sums;
    const int64_t step = direct ? stride : kWidth;
    if (direct && epilogue.accumulate) {
#pragma GCC unroll 16
      for (int64_t i = 0; i < kRows; i++) {
#pragma GCC unroll 4
        for (int64_t v = 0; v < kVecs; v++) sum[i][v] += *reinterpret_cast<Unaligned*>(to + i * step + v * kWide);
      }
    }
#pragma GCC unroll 16
    for (int64_t i = 0; i < kRows; i++) {
#pragma GCC unroll 4
      for (int64_t v = 0; v < kVecs; v++) *reinterpret_cast<Unaligned*>(to + i * step + v * kWide) = sum[i][v];
    }
    if (!direct) Finish(sums, kRows, kWidth, columns, out, stride, epilogue);
  }

  /// Any epilogue, and tiles at the edge: `columns` of the rows of sums, which are `width` long.
  static __attribute__((noinline)) void Finish(const T* sums, int64_t rows, int64_t width, int64_t columns, T* out,
                                               int64_t stride, const Epilogue<T>& epilogue) {
    for (int64_t i = 0; i < rows; i++, sums += width, out += stride) {
      const T* residual = epilogue.residual ? epilogue.residual + i * epilogue.residual_stride : nullptr;
      for (int64_t j = 0; j < columns; j += kLanes) {
        const int64_t count = Smaller(kLanes, columns - j);
        Vector sum = LoadSome(sums + j, count);
        if (epilogue.accumulate) sum += LoadSome(out + j, count);
        if (epilogue.bias) sum += LoadSome(epilogue.bias + j, count);
        if (residual) sum += LoadSome(residual + j, count);
        if (epilogue.relu) sum = ((sum > 0) | (sum != sum)) ? sum : Vector{};  // a NaN stays
        StoreSome(out + j, sum, count);
      }
    }
  }

  /// `count` elements (or a vector full), and zeros.
  static Vector LoadSome(const T* from, int64_t count) {
    if (count >= kLanes) return Load(from);
    T some[kLanes] = {};
    for (int64_t j = 0; j < count; j++) some[j] = from[j];
    return Load(some);
  }

  static void StoreSome(T* to, Vector value, int64_t count) {
    if (count >= kLanes) return Store(to, value);
    T some[kLanes];
    Store(some, value);
    for (int64_t j = 0; j < count; j++) to[j] = some[j];
  }

  // ---- all tiles of a block -----------------------------------------------------------------------------------------

  using TileFunction = void (*)(const T*, const T*, int64_t, int64_t, T*, int64_t, const Epilogue<T>&);

  /// The tile for so many rows and columns: a narrow panel takes fewer or shorter vectors.
  static TileFunction TileFor(int64_t rows, int64_t columns) {
    constexpr int64_t kHalf = kVectorBytes > 16 ? kVectorBytes / 2 : 16;
    if (columns > kLanes) return TileOf<kVectors, kVectorBytes>(rows);
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
    const int64_t last = sizes.rows % kTileRows, whole = sizes.rows - last;
    for (int64_t j = 0; j < sizes.columns; j += kTileColumns) {
      const int64_t columns = Smaller(kTileColumns, sizes.columns - j);
      const auto multiply = [&](TileFunction tile, int64_t i) {
        tile(strips + i * sizes.inner, panels + j * sizes.inner, sizes.inner, columns, out + i * out_stride + j,
             out_stride, Moved(epilogue, i, j));
      };
      const TileFunction tile = TileFor(kTileRows, columns);
      for (int64_t i = 0; i < whole; i += kTileRows) multiply(tile, i);
      if (last) multiply(TileFor(last, columns), whole);
    }
  }

  static Epilogue<T> Moved(Epilogue<T> epilogue, int64_t row, int64_t column) {
    if (epilogue.bias) epilogue.bias += column;
    if (epilogue.residual) epilogue.residual += row * epilogue.residual_stride + column;
    return epilogue;
  }

  // ---- a row times a matrix: each number of b is used once, so that packing would cost more than multiplying
  // ---------

  static void MultiplyRow(const T* row, int64_t row_stride, const Matrix<T>& b, int64_t inner, int64_t columns,
                          T* out) {
    if (b.column_stride == 1) {
      for (int64_t j = 0; j < columns; j++) out[j] = 0;
      int64_t k = 0;
      for (; k + 8 <= inner; k += 8) {
        AddRows<8>(row + k * row_stride, row_stride, b.data + k * b.row_stride, b.row_stride, columns, out);
      }
      for (; k < inner; k++) {
        AddRows<1>(row + k * row_stride, row_stride, b.data + k * b.row_stride, b.row_stride, columns, out);
      }
    } else {
      for (int64_t j = 0; j < columns; j++) out[j] = Dot(row, b.data + j * b.column_stride, inner);
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

  /// Σ a[k] b[k], in four vectors of sums.
  static T Dot(const T* a, const T* b, int64_t inner) {
    Vector sum[4] = {};
    int64_t k = 0;
    for (; k + 4 * kLanes <= inner; k += 4 * kLanes) {
#pragma GCC unroll 4
      for (int64_t v = 0; v < 4; v++) sum[v] += Load(a + k + v * kLanes) * Load(b + k + v * kLanes);
    }
    for (; k < inner; k += kLanes) sum[0] += LoadSome(a + k, inner - k) * LoadSome(b + k, inner - k);
    const Vector all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    T total = 0;
    for (int64_t i = 0; i < kLanes; i++) total += all[i];
    return total;
  }

  static GemmKernels<T> Table() { return {kTileRows, kTileColumns, &PackA, &PackB, &Multiply, &MultiplyRow}; }
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
