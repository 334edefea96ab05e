// Layer normalisation of rows (Ba, Kiros and Hinton 2016, "Layer normalization", equation 4).
#ifndef NEEDLE_KERNELS_CUDA_LAYER_NORM_H_
#define NEEDLE_KERNELS_CUDA_LAYER_NORM_H_

#include "../buffer.h"

namespace needle {

/// out[row] = (a[row] - mean[row]) · scale[row] · weight + bias, for rows as long as weight, with scale =
/// 1 / √(variance + eps).  mean and scale, one for each row, are what the backward pass needs.
void LayerNorm(const Buffer& a, const Buffer& weight, const Buffer& bias, Buffer& out, Buffer& mean, Buffer& scale,
               double eps);

/// The gradients of a, weight and bias.
void LayerNormBackward(const Buffer& a, const Buffer& weight, const Buffer& mean, const Buffer& scale,
                       const Buffer& out_grad, Buffer& to_a, Buffer& to_weight, Buffer& to_bias);

}  // namespace needle

#endif  // NEEDLE_KERNELS_CUDA_LAYER_NORM_H_
