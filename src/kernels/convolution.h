// Convolution of images (N, H, W, C) with a kernel (KH, KW, C / groups, F), and its gradients, without a copy of the
// windows ("im2col").
#ifndef NEEDLE_KERNELS_CONVOLUTION_H_
#define NEEDLE_KERNELS_CONVOLUTION_H_

#include "../checks.h"
#include "buffer.h"

namespace needle {

/// out[n, y, x, f] = bias[f] + Σ images[n, sy·y + dy·i - py, sx·x + dx·j - px, c] · kernel[i, j, c, f],
///
/// with zeros around, for (sy, sx) = stride, (py, px) = padding, (dy, dx) = dilation; each group of filters sees its
/// own group of channels.  With relu, what is below 0 becomes 0.  The images may be any view; bias may be null.  out:
///
/// (N, (H + 2 py - dy (KH - 1) - 1) / sy + 1, (W + 2 px - dx (KW - 1) - 1) / sx + 1, F).
void Convolution(const Buffer& images, const Buffer& kernel, const Buffer* bias, Buffer& out, const Dims& images_shape,
                 const Dims& images_strides, int64_t images_offset, const Dims& kernel_shape, const Dims& stride,
                 const Dims& padding, const Dims& dilation, int64_t groups, bool relu);

/// The gradient of the images, `out`, given that of the results, which may be any view.
void ConvolutionToImages(const Buffer& out_grad, const Buffer& kernel, Buffer& out, const Dims& grad_strides,
                         int64_t grad_offset, const Dims& images_shape, const Dims& kernel_shape, const Dims& stride,
                         const Dims& padding, const Dims& dilation, int64_t groups);

/// The gradient of the kernel, `out`, and, unless null, of the bias.
void ConvolutionToKernel(const Buffer& images, const Buffer& out_grad, Buffer& out, Buffer* bias_out,
                         const Dims& images_shape, const Dims& images_strides, int64_t images_offset,
                         const Dims& grad_strides, int64_t grad_offset, const Dims& kernel_shape, const Dims& stride,
                         const Dims& padding, const Dims& dilation, int64_t groups);

}  // namespace needle

#endif  // NEEDLE_KERNELS_CONVOLUTION_H_
