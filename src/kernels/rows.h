// Fused operations on contiguous rows of `cols` floats.
#ifndef NEEDLE_KERNELS_ROWS_H_
#define NEEDLE_KERNELS_ROWS_H_

#include "buffer.h"

namespace needle {

/// out[row] = log(sum(exp(a[row]))), shifted by the row's maximum so that nothing overflows; -inf for a row of -inf.
void Logsumexp(const Buffer& a, Buffer& out, int64_t cols);

/// out[row, j] = out_grad[row] * exp(a[row, j] - lse[row]).
void LogsumexpBackward(const Buffer& a, const Buffer& lse, const Buffer& out_grad, Buffer& out, int64_t cols);

/// out[row] = a[row] - logsumexp(a[row]).
void Logsoftmax(const Buffer& a, Buffer& out, int64_t cols);

/// out[row] = out_grad[row] - exp(y[row]) * sum(out_grad[row]), for y = logsoftmax(a).
void LogsoftmaxBackward(const Buffer& y, const Buffer& out_grad, Buffer& out, int64_t cols);

}  // namespace needle

#endif  // NEEDLE_KERNELS_ROWS_H_
