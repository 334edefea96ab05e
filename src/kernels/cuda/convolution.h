// Convolution of images (N, H, W, C) with a kernel (KH, KW, C, F), as Conv of the library means it, and its gradients.
#ifndef NEEDLE_KERNELS_CUDA_CONVOLUTION_H_
#define NEEDLE_KERNELS_CUDA_CONVOLUTION_H_

#include "../../checks.h"
#include "../buffer.h"

namespace needle {

/// out[n, y, x, f] = Σ images[n, y·stride + i - ph, x·stride + j - pw, c] · kernel[i, j, c, f], with zeros around.
/// out is (N, (H + 2 ph - KH) / stride + 1, (W + 2 pw - KW) / stride + 1, F) for padding (ph, pw).
void ConvForward(const Buffer& images, const Buffer& kernel, Buffer& out, const Dims& images_shape,
                 const Dims& kernel_shape, int64_t stride, const Dims& padding);

/// The gradient of the images, `out`, given that of the results, `out_grad`.
void ConvToImages(const Buffer& out_grad, const Buffer& kernel, Buffer& out, const Dims& images_shape,
                  const Dims& kernel_shape, int64_t stride, const Dims& padding);

/// The gradient of the kernel, `out`.
void ConvToKernel(const Buffer& images, const Buffer& out_grad, Buffer& out, const Dims& images_shape,
                  const Dims& kernel_shape, int64_t stride, const Dims& padding);

}  // namespace needle

#endif  // NEEDLE_KERNELS_CUDA_CONVOLUTION_H_
