// Copies of views whose last axis is not the one along which they lie in memory.
#ifndef NEEDLE_KERNELS_CUDA_TRANSPOSE_H_
#define NEEDLE_KERNELS_CUDA_TRANSPOSE_H_

#include "../buffer.h"
#include "../view.h"

namespace needle {
namespace cuda {

/// out = the view of `a`, in row-major order, by tiles through shared memory; false, and nothing done, if the view is
/// not a large transposed one.
bool CompactTransposed(const Buffer& a, const View& view, Buffer& out);

}  // namespace cuda
}  // namespace needle

#endif  // NEEDLE_KERNELS_CUDA_TRANSPOSE_H_
