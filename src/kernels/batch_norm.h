// Batch norm: every channel brought to mean 0 and variance 1, then scaled and shifted (Ioffe and Szegedy 2015).
#ifndef NEEDLE_KERNELS_BATCH_NORM_H_
#define NEEDLE_KERNELS_BATCH_NORM_H_

#include "buffer.h"
#include "isa.h"

namespace needle {

/// Of a, seen as (outer, channels, inner): mean and scale = 1 / √(variance + eps) of every channel, and
/// out = (a - mean) · scale · weight + bias.  mixed_mean = (1 - momentum) · running_mean + momentum · mean; mixed_var
/// likewise.  The variance is the biased one.
void BatchNorm(const Buffer& a, const Buffer& weight, const Buffer& bias, const Buffer& running_mean,
               const Buffer& running_var, Buffer& out, Buffer& mean, Buffer& scale, Buffer& mixed_mean,
               Buffer& mixed_var, int64_t outer, int64_t inner, double eps, double momentum);

/// The gradients of a, weight and bias, given that of out.
void BatchNormBackward(const Buffer& a, const Buffer& weight, const Buffer& mean, const Buffer& scale,
                       const Buffer& out_grad, Buffer& to_a, Buffer& to_weight, Buffer& to_bias, int64_t outer,
                       int64_t inner);

// ---- the loops, made for each instruction set -----------------------------------------------------------------------

/// Some of the outermost entries of an array (outer, channels, inner).
struct Slab {
  int64_t outer, channels, inner;
};

template <typename T>
struct BatchNormLoops {
  /// For every channel the sum, and the sum of squared distances from the slab's own mean.
  void (*statistics)(const T* a, const Slab& slab, T* sum, T* squares);
  /// out = (a - mean) · factor + bias
  void (*normalize)(const T* a, const Slab& slab, const T* mean, const T* factor, const T* bias, T* out);
  /// For every channel Σ grad and Σ grad · (a - mean).
  void (*gradient_sums)(const T* a, const T* grad, const Slab& slab, const T* mean, T* sum, T* product);
  /// out = factor · (grad - shift - (a - mean) · slope)
  void (*to_input)(const T* a, const T* grad, const Slab& slab, const T* mean, const T* factor, const T* shift,
                   const T* slope, T* out);
};

NEEDLE_FOR_EACH_ISA(template <typename T> BatchNormLoops<T> LoopsOfBatchNorm();)

}  // namespace needle

#endif  // NEEDLE_KERNELS_BATCH_NORM_H_
