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

  /// `items` of kWidth items, each with `depth` steps, -> depth rows of kWidth elements.
  template <int64_t kWidth>
  static void PackOne(const T* from, int64_t item_stride, int64_t step_stride, int64_t items, int64_t depth, T* to) {
    int64_t k = 0;
    if (items == kWidth && step_stride == 1) {
      for (; k + kQuad <= depth; k += kQuad) TransposeQuads<kWidth>(from + k, item_stride, to + k * kWidth);
    } else if (items == kWidth && item_stride == 1) {
      for (; k < depth; k++) CopyRow<kWidth>(from + k * step_stride, to + k * kWidth);
    }
    for (; k < depth; k++) {
      for (int64_t i = 0; i < kWidth; i++) {
        to[k * kWidth + i] = i < items ? from[i * item_stride + k * step_stride] : T(0);
      }
    }
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
  static void CopyRow(const T* from, T* to) {
    if constexpr (kWidth % kLanes == 0) {
      for (int64_t i = 0; i < kWidth; i += kLanes) Store(to + i, Load(from + i));
    } else {
      for (int64_t i = 0; i < kWidth; i += kQuad) {
        const int64_t first = Smaller(i, kWidth - kQuad);
        StoreQuad(to + first, LoadQuad(from + first));
      }
    }
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

  /// A tile of kRows rows, whose `columns` fill kVecs vectors or less.
  template <int64_t kRows, int64_t kVecs>
  static void MultiplyTile(const T* strip, const T* panel, int64_t depth, int64_t columns, T* out, int64_t stride,
                           const Epilogue<T>& epilogue) {
#pragma GCC unroll 16
    for (int64_t i = 0; i < kRows; i++) __builtin_prefetch(out + i * stride, 1);
    Vector sum[kRows][kVecs] = {};
    for (int64_t k = 0; k < depth; k++, strip += kTileRows, panel += kTileColumns) {
      Vector b[kVecs];
#pragma GCC unroll 4
      for (int64_t v = 0; v < kVecs; v++) b[v] = Load(panel + v * kLanes);
#pragma GCC unroll 16
      for (int64_t i = 0; i < kRows; i++) {
        const Vector a = Vector{} + strip[i];
#pragma GCC unroll 4
        for (int64_t v = 0; v < kVecs; v++) sum[i][v] += a * b[v];
      }
    }
    if (columns == kVecs * kLanes && !HasMore(epilogue)) {
#pragma GCC unroll 16
      for (int64_t i = 0; i < kRows; i++) {
#pragma GCC unroll 4
        for (int64_t v = 0; v < kVecs; v++) {
          T* to = out + i * stride + v * kLanes;
          Store(to, epilogue.accumulate ? Load(to) + sum[i][v] : sum[i][v]);
        }
      }
    } else {
      Vector sums[kRows * kVecs];  // a copy, or `sum` would have an address and live in memory
#pragma GCC unroll 16
      for (int64_t i = 0; i < kRows; i++) {
#pragma GCC unroll 4
        for (int64_t v = 0; v < kVecs; v++) sums[i * kVecs + v] = sum[i][v];
      }
      Finish(sums, kRows, kVecs, columns, out, stride, epilogue);
    }
  }

  static bool HasMore(const Epilogue<T>& epilogue) { return epilogue.bias || epilogue.residual || epilogue.relu; }

  /// Any epilogue, and tiles at the edge.
  static __attribute__((noinline)) void Finish(const Vector* sums, int64_t rows, int64_t vectors, int64_t columns,
                                               T* out, int64_t stride, const Epilogue<T>& epilogue) {
    for (int64_t i = 0; i < rows; i++) {
      for (int64_t v = 0; v < vectors; v++) {
        const int64_t column = v * kLanes, count = columns - column;
        T* to = out + i * stride + column;
        Vector sum = *sums++;
        if (epilogue.accumulate) sum += LoadSome(to, count);
        if (epilogue.bias) sum += LoadSome(epilogue.bias + column, count);
        if (epilogue.residual) sum += LoadSome(epilogue.residual + i * epilogue.residual_stride + column, count);
        if (epilogue.relu) sum = (sum > 0) | (sum != sum) ? sum : Vector{};  // a NaN stays
        StoreSome(to, sum, count);
      }
    }
  }

  /// `count` elements (or a vector full), and zeros.
  static Vector LoadSome(const T* from, int64_t count) {
    if (count >= kLanes) return Load(from);
    Vector value = {};
    for (int64_t j = 0; j < count; j++) value[j] = from[j];
    return value;
  }

  static void StoreSome(T* to, Vector value, int64_t count) {
    if (count >= kLanes) return Store(to, value);
    for (int64_t j = 0; j < count; j++) to[j] = value[j];
  }

  // ---- all tiles of a block -----------------------------------------------------------------------------------------

  using TileFunction = void (*)(const T*, const T*, int64_t, int64_t, T*, int64_t, const Epilogue<T>&);

  /// The tile of so many rows and vectors.
  template <int64_t kVecs, int64_t kRows = kTileRows>
  static TileFunction TileOf(int64_t rows) {
    if constexpr (kRows > 1) {
      if (rows < kRows) return TileOf<kVecs, kRows - 1>(rows);
    }
    return &MultiplyTile<kRows, kVecs>;
  }

  static void Multiply(const T* strips, const T* panels, const GemmSizes& sizes, T* out, int64_t out_stride,
                       const Epilogue<T>& epilogue) {
    const int64_t last = sizes.rows % kTileRows, whole = sizes.rows - last;
    for (int64_t j = 0; j < sizes.columns; j += kTileColumns) {
      const int64_t columns = Smaller(kTileColumns, sizes.columns - j);
      const bool narrow = columns <= kLanes;
      const TileFunction tile = narrow ? TileOf<1>(kTileRows) : TileOf<2>(kTileRows);
      const T* panel = panels + j * sizes.inner;
      for (int64_t i = 0; i < whole; i += kTileRows) {
        tile(strips + i * sizes.inner, panel, sizes.inner, columns, out + i * out_stride + j, out_stride,
             Moved(epilogue, i, j));
      }
      if (last) {
        (narrow ? TileOf<1>(last) : TileOf<2>(last))(strips + whole * sizes.inner, panel, sizes.inner, columns,
                                                     out + whole * out_stride + j, out_stride,
                                                     Moved(epilogue, whole, j));
      }
    }
  }

  static Epilogue<T> Moved(Epilogue<T> epilogue, int64_t row, int64_t column) {
    if (epilogue.bias) epilogue.bias += column;
    if (epilogue.residual) epilogue.residual += row * epilogue.residual_stride + column;
    return epilogue;
  }

  static GemmKernels<T> Table() { return {kTileRows, kTileColumns, &PackA, &PackB, &Multiply}; }
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
