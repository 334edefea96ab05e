// Reading and adding along one axis by index.
#ifndef NEEDLE_KERNELS_GATHER_H_
#define NEEDLE_KERNELS_GATHER_H_

#include "buffer.h"

namespace needle {

/// out[o, i, j] = a[o, indices[i], j] for a of (outer, axis_size, inner).  A negative index counts from the end; one
/// outside is an IndexError, and out is untouched.
void Take(const Buffer& a, const Buffer& indices, Buffer& out, int64_t outer, int64_t axis_size, int64_t inner);

/// The adjoint: out[o, indices[i], j] += a[o, i, j] for out of (outer, axis_size, inner).  Repeated indices add up.
void ScatterAdd(const Buffer& a, const Buffer& indices, Buffer& out, int64_t outer, int64_t axis_size, int64_t inner);

}  // namespace needle

#endif  // NEEDLE_KERNELS_GATHER_H_
