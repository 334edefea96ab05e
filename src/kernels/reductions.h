// One result per contiguous run of reduce_size elements.
#ifndef NEEDLE_KERNELS_REDUCTIONS_H_
#define NEEDLE_KERNELS_REDUCTIONS_H_

#include "buffer.h"

namespace needle {

void ReduceSum(const Buffer& a, Buffer& out, int64_t reduce_size);
void ReduceProd(const Buffer& a, Buffer& out, int64_t reduce_size);
void ReduceMax(const Buffer& a, Buffer& out, int64_t reduce_size);
void ReduceMin(const Buffer& a, Buffer& out, int64_t reduce_size);

/// The int64 position, within its run, of the first maximum (minimum); a NaN wins.
void ReduceArgmax(const Buffer& a, Buffer& out, int64_t reduce_size);
void ReduceArgmin(const Buffer& a, Buffer& out, int64_t reduce_size);

}  // namespace needle

#endif  // NEEDLE_KERNELS_REDUCTIONS_H_
