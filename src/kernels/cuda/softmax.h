// The softmax of rows, and the cross-entropy that is taken of it.
#ifndef NEEDLE_KERNELS_CUDA_SOFTMAX_H_
#define NEEDLE_KERNELS_CUDA_SOFTMAX_H_

#include "../buffer.h"

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

}  // namespace needle

#endif  // NEEDLE_KERNELS_CUDA_SOFTMAX_H_
