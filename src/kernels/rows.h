// Fused operations on contiguous rows of `cols` floats.
#ifndef NEEDLE_KERNELS_ROWS_H_
#define NEEDLE_KERNELS_ROWS_H_

#include "../checks.h"
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

// ---- what they ask of their arguments, on every device --------------------------------------------------------------

/// The number of rows; refuses what is none.
inline int64_t CheckedRows(const char* who, const Buffer& a, int64_t cols) {
  if (cols < 1) Refuse(who, "rows of " + std::to_string(cols) + " columns, wanted 1 or more");
  if (a.size() % cols) Refuse(who, std::to_string(a.size()) + " elements are no rows of " + std::to_string(cols));
  return a.size() / cols;
}

}  // namespace needle

#endif  // NEEDLE_KERNELS_ROWS_H_
