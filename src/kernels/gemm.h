// The fast matrix product of floats: packed, in five loops around one micro-kernel, as in K. Goto and R. van de Geijn,
// "Anatomy of high-performance matrix multiplication" (2008), and the BLIS papers after it.
#ifndef NEEDLE_KERNELS_GEMM_H_
#define NEEDLE_KERNELS_GEMM_H_

#include <cstdint>

#include "isa.h"

namespace needle {

/// out = a @ b for row-major (rows, inner) and (inner, columns); T is float or double.
template <typename T>
void Gemm(const T* a, const T* b, T* out, int64_t rows, int64_t inner, int64_t columns);

/// The innermost loops, made for one vector width.  A *strip* is tile_rows rows of a, a *panel* tile_columns columns of
/// b; packed, the elements of one k lie side by side, and what is missing at the edge is 0.
template <typename T>
struct GemmKernels {
  int64_t tile_rows, tile_columns;
  /// Pack `rows` rows of `depth` elements into strips.
  void (*pack_a)(const T* a, int64_t row_stride, int64_t rows, int64_t depth, T* packed);
  /// Pack `columns` columns of `depth` elements into panels.
  void (*pack_b)(const T* b, int64_t row_stride, int64_t depth, int64_t columns, T* packed);
  /// out (+)= strips @ panels, tile by tile.
  void (*multiply)(const T* strips, const T* panels, T* out, int64_t row_stride, int64_t rows, int64_t depth,
                   int64_t columns, bool accumulate);
};

NEEDLE_FOR_EACH_ISA(template <typename T> GemmKernels<T> TableOfGemm();)

}  // namespace needle

#endif  // NEEDLE_KERNELS_GEMM_H_
