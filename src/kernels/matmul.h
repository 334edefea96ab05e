// Matrix products of row-major matrices.
#ifndef NEEDLE_KERNELS_MATMUL_H_
#define NEEDLE_KERNELS_MATMUL_H_

#include "buffer.h"

namespace needle {

/// out = a @ b: (m, n) times (n, p).  For bool, "any of and".
void Matmul(const Buffer& a, const Buffer& b, Buffer& out, int64_t m, int64_t n, int64_t p);

/// out[i] = a[i] @ b[i] for `batch` products; the i-th matrix of `a` begins at i * a_stride (0: one matrix for all).
void MatmulBatched(const Buffer& a, const Buffer& b, Buffer& out, int64_t batch, int64_t m, int64_t n, int64_t p,
                   int64_t a_stride, int64_t b_stride);

/// The plain twin, which the fast ones are proved against.
template <typename T>
void PlainMatmul(const T* a, const T* b, T* out, int64_t m, int64_t n, int64_t p);

}  // namespace needle

#endif  // NEEDLE_KERNELS_MATMUL_H_
