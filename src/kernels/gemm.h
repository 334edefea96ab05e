// The fast matrix product of floats: packed, in five loops around one micro-kernel, as in K. Goto and R. van de Geijn,
// "Anatomy of high-performance matrix multiplication" (2008), and the BLIS papers after it.
//
//     Gemm<float>({a, n, 1}, {b, p, 1}, {m, n, p}, out, p);                  out = a @ b, all of them row-major
//     Gemm<float>({x, 1, n}, {g, p, 1}, {n, m, p}, out, p, Accumulated<float>());  out += x.T @ g, for an (m, n) x
#ifndef NEEDLE_KERNELS_GEMM_H_
#define NEEDLE_KERNELS_GEMM_H_

#include <cstdint>

#include "isa.h"

namespace needle {

/// A matrix in memory: element (i, j) is data[i * row_stride + j * column_stride].  Strides may be 0 or negative.
template <typename T>
struct Matrix {
  const T* data;
  int64_t row_stride, column_stride;
};

/// (rows, inner) @ (inner, columns).
struct GemmSizes {
  int64_t rows, inner, columns;
};

/// What happens to each element of the product on its way into out, in this order.
template <typename T>
struct Epilogue {
  bool accumulate = false;      // out's element is added
  const T* bias = nullptr;      // bias[column] is added
  const T* residual = nullptr;  // residual[row * residual_stride + column] is added; it must not overlap out
  int64_t residual_stride = 0;
  bool relu = false;  // then what is below 0 becomes 0
};

template <typename T>
Epilogue<T> Accumulated() {
  Epilogue<T> epilogue;
  epilogue.accumulate = true;
  return epilogue;
}

/// out = epilogue(a @ b), out's rows lying out_stride elements apart; T is float or double.  On several threads, unless
/// it is called on one of several; the bits do not depend on how many there are.
template <typename T>
void Gemm(const Matrix<T>& a, const Matrix<T>& b, const GemmSizes& sizes, T* out, int64_t out_stride,
          const Epilogue<T>& epilogue = {});

/// The same on the calling thread alone.
template <typename T>
void SerialGemm(const Matrix<T>& a, const Matrix<T>& b, const GemmSizes& sizes, T* out, int64_t out_stride,
                const Epilogue<T>& epilogue = {});

constexpr int64_t kMostDots = 8;

/// The innermost loops, made for one vector width.  A *strip* is tile_rows rows of a, a *panel* tile_columns columns of
/// b; packed, the elements of one k lie side by side.  The last strip and panel take as much room as the others;
/// multiply must then be told of as many rows and columns as were packed.
template <typename T>
struct GemmKernels {
  int64_t tile_rows, tile_columns;
  /// Pack (rows, depth) elements of a into strips.
  void (*pack_a)(const Matrix<T>& a, int64_t rows, int64_t depth, T* packed);
  /// Pack (depth, columns) elements of b into panels.
  void (*pack_b)(const Matrix<T>& b, int64_t depth, int64_t columns, T* packed);
  /// out = epilogue(strips @ panels), tile by tile.
  void (*multiply)(const T* strips, const T* panels, const GemmSizes& sizes, T* out, int64_t out_stride,
                   const Epilogue<T>& epilogue);
  /// The same for a b that is not packed: column_stride 1, columns a multiple of tile_columns.
  void (*multiply_in_place)(const T* strips, const Matrix<T>& b, const GemmSizes& sizes, T* out, int64_t out_stride,
                            const Epilogue<T>& epilogue);
  /// out = row @ b, for an unpacked b whose column_stride is 1.
  void (*multiply_row)(const T* row, int64_t row_stride, const Matrix<T>& b, int64_t inner, int64_t columns, T* out);
  /// out = a @ b, row-major, for kMostDots columns or fewer; a's rows and b's columns lie in one piece each.
  void (*multiply_dots)(const Matrix<T>& a, const Matrix<T>& b, const GemmSizes& sizes, T* out);
};

NEEDLE_FOR_EACH_ISA(template <typename T> GemmKernels<T> TableOfGemm();)

}  // namespace needle

#endif  // NEEDLE_KERNELS_GEMM_H_
