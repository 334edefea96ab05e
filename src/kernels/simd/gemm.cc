// The micro-kernel of the matrix product.  The tile of kTileRows x kVectors vectors stays in registers while k runs; each
// step loads kVectors vectors of b and broadcasts kTileRows numbers of a.
#include "../gemm.h"

#include "vector.h"

namespace needle {
namespace {

constexpr int64_t kTileRows = kRegisters == 32 && kVectorBytes == 64 ? 12 : 6, kVectors = 2;  // sums stay in registers

template <typename T>
struct Kernel : Simd<T> {
  using typename Simd<T>::Vector;
  using Simd<T>::kLanes, Simd<T>::Load, Simd<T>::Store;

  static constexpr int64_t kTileColumns = kVectors * kLanes;

  static int64_t Smaller(int64_t a, int64_t b) { return a < b ? a : b; }

  static void PackA(const T* a, int64_t row_stride, int64_t rows, int64_t depth, T* packed) {
    for (int64_t first = 0; first < rows; first += kTileRows, packed += kTileRows * depth) {
      const T* strip = a + first * row_stride;
      if (rows - first >= kTileRows) {
        for (int64_t k = 0; k < depth; k++) {
          for (int64_t i = 0; i < kTileRows; i++) packed[k * kTileRows + i] = strip[i * row_stride + k];
        }
      } else {
        for (int64_t k = 0; k < depth; k++) {
          for (int64_t i = 0; i < kTileRows; i++) {
            packed[k * kTileRows + i] = i < rows - first ? strip[i * row_stride + k] : T(0);
          }
        }
      }
    }
  }

  static void PackB(const T* b, int64_t row_stride, int64_t depth, int64_t columns, T* packed) {
    for (int64_t first = 0; first < columns; first += kTileColumns) {
      const int64_t width = Smaller(kTileColumns, columns - first);
      for (int64_t k = 0; k < depth; k++, packed += kTileColumns) {
        const T* row = b + k * row_stride + first;
        if (width == kTileColumns) {
          for (int64_t v = 0; v < kVectors; v++) Store(packed + v * kLanes, Load(row + v * kLanes));
        } else {
          for (int64_t j = 0; j < kTileColumns; j++) packed[j] = j < width ? row[j] : T(0);
        }
      }
    }
  }

  /// One tile of out (+)= strip @ panel; `rows` and `columns` of it lie inside out.
  static void MultiplyTile(const T* strip, const T* panel, T* out, int64_t row_stride, int64_t rows, int64_t depth,
                           int64_t columns, bool accumulate) {
    Vector sum[kTileRows][kVectors] = {};
    for (int64_t k = 0; k < depth; k++, strip += kTileRows, panel += kTileColumns) {
      Vector b[kVectors];
#pragma GCC unroll 4
      for (int64_t v = 0; v < kVectors; v++) b[v] = Load(panel + v * kLanes);
#pragma GCC unroll 16
      for (int64_t i = 0; i < kTileRows; i++) {
        const Vector a = Vector{} + strip[i];
#pragma GCC unroll 4
        for (int64_t v = 0; v < kVectors; v++) sum[i][v] += a * b[v];
      }
    }
    if (rows == kTileRows && columns == kTileColumns) {
#pragma GCC unroll 16
      for (int64_t i = 0; i < kTileRows; i++) {
#pragma GCC unroll 4
        for (int64_t v = 0; v < kVectors; v++) {
          T* to = out + i * row_stride + v * kLanes;
          Store(to, accumulate ? Load(to) + sum[i][v] : sum[i][v]);
        }
      }
    } else {
      StoreEdge(sum, out, row_stride, rows, columns, accumulate);
    }
  }

  static void StoreEdge(const Vector (&sum)[kTileRows][kVectors], T* out, int64_t row_stride, int64_t rows,
                        int64_t columns, bool accumulate) {
    for (int64_t i = 0; i < rows; i++) {
      for (int64_t j = 0; j < columns; j++) {
        T& to = out[i * row_stride + j];
        to = (accumulate ? to : T(0)) + sum[i][j / kLanes][j % kLanes];
      }
    }
  }

  static void Multiply(const T* strips, const T* panels, T* out, int64_t row_stride, int64_t rows, int64_t depth,
                       int64_t columns, bool accumulate) {
    for (int64_t j = 0; j < columns; j += kTileColumns) {
      for (int64_t i = 0; i < rows; i += kTileRows) {
        MultiplyTile(strips + i * depth, panels + j * depth, out + i * row_stride + j, row_stride,
                     Smaller(kTileRows, rows - i), depth, Smaller(kTileColumns, columns - j), accumulate);
      }
    }
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
