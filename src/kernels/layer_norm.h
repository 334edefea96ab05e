// Layer normalisation of rows (Ba, Kiros and Hinton 2016, "Layer normalization", equation 4).
#ifndef NEEDLE_KERNELS_LAYER_NORM_H_
#define NEEDLE_KERNELS_LAYER_NORM_H_

#include "buffer.h"
#include "rows.h"

namespace needle {

/// out[row] = (a[row] - mean[row]) · scale[row] · weight + bias, for rows as long as weight, with scale =
/// 1 / √(variance + eps).  mean and scale, one for each row, are what the backward pass needs.
void LayerNorm(const Buffer& a, const Buffer& weight, const Buffer& bias, Buffer& out, Buffer& mean, Buffer& scale,
               double eps);

/// The gradients of a, weight and bias.
void LayerNormBackward(const Buffer& a, const Buffer& weight, const Buffer& mean, const Buffer& scale,
                       const Buffer& out_grad, Buffer& to_a, Buffer& to_weight, Buffer& to_bias);

// ---- what they ask of their arguments, on every device --------------------------------------------------------------

inline void CheckLayerNorm(const char* who, const Buffer& a, const Buffer& weight, const Buffer& bias,
                           const Buffer& out, const Buffer& mean, const Buffer& scale) {
  const int64_t cols = weight.size(), rows = CheckedRows(who, a, cols);
  CheckDType(who, "weight", weight, a.dtype());
  CheckBuffer(who, "bias", bias, cols, a.dtype());
  CheckBuffer(who, "out", out, a.size(), a.dtype());
  CheckBuffer(who, "mean", mean, rows, a.dtype());
  CheckBuffer(who, "scale", scale, rows, a.dtype());
  CheckApart(who, mean, scale);
  for (const Buffer* input : {&a, &weight, &bias}) {
    for (const Buffer* result : {&mean, &scale}) CheckApart(who, *input, *result);
  }
  for (const Buffer* other : {&weight, &bias, &mean, &scale}) CheckApart(who, *other, out);
}

inline void CheckLayerNormBackward(const char* who, const Buffer& a, const Buffer& weight, const Buffer& mean,
                                   const Buffer& scale, const Buffer& out_grad, const Buffer& to_a,
                                   const Buffer& to_weight, const Buffer& to_bias) {
  const int64_t cols = weight.size(), rows = CheckedRows(who, a, cols);
  CheckDType(who, "weight", weight, a.dtype());
  CheckBuffer(who, "mean", mean, rows, a.dtype());
  CheckBuffer(who, "scale", scale, rows, a.dtype());
  CheckBuffer(who, "out_grad", out_grad, a.size(), a.dtype());
  CheckBuffer(who, "to_a", to_a, a.size(), a.dtype());
  CheckBuffer(who, "to_weight", to_weight, cols, a.dtype());
  CheckBuffer(who, "to_bias", to_bias, cols, a.dtype());
  for (const Buffer* input : {&a, &weight, &mean, &scale, &out_grad}) {
    for (const Buffer* result : {&to_a, &to_weight, &to_bias}) CheckApart(who, *input, *result);
  }
  CheckApart(who, to_a, to_weight), CheckApart(who, to_a, to_bias), CheckApart(who, to_weight, to_bias);
}

}  // namespace needle

#endif  // NEEDLE_KERNELS_LAYER_NORM_H_
