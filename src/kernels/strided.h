// Copies between flat storage and strided views.
#ifndef NEEDLE_KERNELS_STRIDED_H_
#define NEEDLE_KERNELS_STRIDED_H_

#include "../checks.h"
#include "buffer.h"
#include "scalar.h"

namespace needle {

/// out = the view of `a`, in row-major order.
void Compact(const Buffer& a, Buffer& out, const Dims& shape, const Dims& strides, int64_t offset);

/// The view of `out` = a, which is in row-major order.
void EwiseSetitem(const Buffer& a, Buffer& out, const Dims& shape, const Dims& strides, int64_t offset);

/// The view of `out`, of `size` elements, = val.
void ScalarSetitem(int64_t size, const Scalar& val, Buffer& out, const Dims& shape, const Dims& strides,
                   int64_t offset);

}  // namespace needle

#endif  // NEEDLE_KERNELS_STRIDED_H_
