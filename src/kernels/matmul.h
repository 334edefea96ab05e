// Matrix products.
#ifndef NEEDLE_KERNELS_MATMUL_H_
#define NEEDLE_KERNELS_MATMUL_H_

#include "../checks.h"
#include "buffer.h"

namespace needle {

/// out[i] = a[i] @ b[i] for `batch` products; the i-th matrix of `a` begins at i * a_stride (0: one matrix for all).
/// For bool, "any of and".
void MatmulBatched(const Buffer& a, const Buffer& b, Buffer& out, int64_t batch, int64_t m, int64_t n, int64_t p,
                   int64_t a_stride, int64_t b_stride);

/// out = a @ b: (m, n) times (n, p).
inline void Matmul(const Buffer& a, const Buffer& b, Buffer& out, int64_t m, int64_t n, int64_t p) {
  CheckSize("matmul", "a", a.size(), CheckedSize("matmul", {m, n}));
  CheckBuffer("matmul", "b", b, CheckedSize("matmul", {n, p}), a.dtype());
  CheckBuffer("matmul", "out", out, CheckedSize("matmul", {m, p}), a.dtype());
  MatmulBatched(a, b, out, 1, m, n, p, 0, 0);
}

/// The same for matrices that lie anywhere, so that none is copied first: shape is (…, m, n, p), the strides are those
/// of (…, m, n) and (…, n, p), out is row-major.
void MatmulStrided(const Buffer& a, const Buffer& b, Buffer& out, const Dims& shape, const Dims& a_strides,
                   int64_t a_offset, const Dims& b_strides, int64_t b_offset);

/// out = a @ b + bias in each row, for one product of floats.
void Linear(const Buffer& a, const Buffer& b, const Buffer& bias, Buffer& out, const Dims& shape, const Dims& a_strides,
            int64_t a_offset, const Dims& b_strides, int64_t b_offset);

/// The plain twin, which the fast ones are proved against.
template <typename T>
void PlainMatmul(const T* a, const T* b, T* out, int64_t m, int64_t n, int64_t p);

// ---- what they ask of their arguments, on every device --------------------------------------------------------------

/// How many elements lie between the beginnings of two matrices of a batch.
struct BatchSteps {
  int64_t a, b;
};

inline BatchSteps CheckedBatch(const Buffer& a, const Buffer& b, const Buffer& out, int64_t batch, int64_t m, int64_t n,
                               int64_t p, int64_t a_stride, int64_t b_stride) {
  const char* who = "matmul_batched";
  const BatchSteps steps{CheckedStrides(who, {batch, m, n}, {a_stride, n, 1}, 0, a.size())[0],
                         CheckedStrides(who, {batch, n, p}, {b_stride, p, 1}, 0, b.size())[0]};
  CheckDType(who, "b", b, a.dtype());
  CheckBuffer(who, "out", out, CheckedSize(who, {batch, m, p}), a.dtype());
  CheckApart(who, a, out);
  CheckApart(who, b, out);
  return steps;
}

}  // namespace needle

#endif  // NEEDLE_KERNELS_MATMUL_H_
