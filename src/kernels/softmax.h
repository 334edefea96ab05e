// The softmax of rows, and the cross-entropy that is taken of it.
#ifndef NEEDLE_KERNELS_SOFTMAX_H_
#define NEEDLE_KERNELS_SOFTMAX_H_

#include <stdexcept>
#include <string>

#include "buffer.h"
#include "rows.h"

namespace needle {

/// out[row] = exp(a[row]) / Σ exp(a[row]), for rows of `cols` floats.
void Softmax(const Buffer& a, Buffer& out, int64_t cols);

/// out[row] = y[row] · (out_grad[row] - Σ y[row] · out_grad[row]), for y = softmax(a).
void SoftmaxBackward(const Buffer& y, const Buffer& out_grad, Buffer& out, int64_t cols);

/// out[row] = log Σ exp(logits[row]) - logits[row, labels[row]], and lse[row] the logarithm, which the backward pass
/// needs.  labels: int64; one that is no column is an IndexError, and out is untouched.
void CrossEntropy(const Buffer& logits, const Buffer& labels, Buffer& out, Buffer& lse, int64_t cols);

/// out[row, j] = out_grad[row] · (softmax(logits)[row, j] - (j == labels[row])).
void CrossEntropyBackward(const Buffer& logits, const Buffer& labels, const Buffer& lse, const Buffer& out_grad,
                          Buffer& out, int64_t cols);

// ---- what they ask of their arguments, on every device --------------------------------------------------------------

/// All but whether each label is a column.
inline void CheckCrossEntropy(const char* who, const Buffer& logits, const Buffer& labels, const Buffer& out,
                              const Buffer& lse, int64_t cols) {
  const int64_t rows = CheckedRows(who, logits, cols);
  CheckBuffer(who, "out", out, rows, logits.dtype());
  CheckBuffer(who, "lse", lse, rows, logits.dtype());
  CheckApart(who, logits, out);
  CheckApart(who, logits, lse);
  CheckApart(who, out, lse);
  CheckBuffer(who, "labels", labels, rows, DType::kInt64);
}

[[noreturn]] inline void RefuseLabel(const char* who, int64_t label, int64_t row, int64_t cols) {
  throw std::out_of_range(std::string(who) + ": label " + std::to_string(label) + " of row " + std::to_string(row) +
                          " is out of bounds for " + std::to_string(cols) + " classes");
}

inline void CheckCrossEntropyBackward(const char* who, const Buffer& logits, const Buffer& labels, const Buffer& lse,
                                      const Buffer& out_grad, const Buffer& out, int64_t cols) {
  const int64_t rows = CheckedRows(who, logits, cols);
  CheckBuffer(who, "labels", labels, rows, DType::kInt64);  // one that is no column changes nothing here
  CheckBuffer(who, "lse", lse, rows, logits.dtype());
  CheckBuffer(who, "out_grad", out_grad, rows, logits.dtype());
  CheckBuffer(who, "out", out, logits.size(), logits.dtype());
}

}  // namespace needle

#endif  // NEEDLE_KERNELS_SOFTMAX_H_
