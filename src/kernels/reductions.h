// One result per contiguous run of reduce_size elements.
#ifndef NEEDLE_KERNELS_REDUCTIONS_H_
#define NEEDLE_KERNELS_REDUCTIONS_H_

#include "../checks.h"
#include "buffer.h"

namespace needle {

void ReduceSum(const Buffer& a, Buffer& out, int64_t reduce_size);
void ReduceProd(const Buffer& a, Buffer& out, int64_t reduce_size);
void ReduceMax(const Buffer& a, Buffer& out, int64_t reduce_size);
void ReduceMin(const Buffer& a, Buffer& out, int64_t reduce_size);

/// As these, for floats in a view whose first `kept` axes are those of out, and the others are reduced.
void ViewReduceSum(const Buffer& a, Buffer& out, const Dims& shape, const Dims& strides, int64_t offset, int64_t kept);
void ViewReduceMax(const Buffer& a, Buffer& out, const Dims& shape, const Dims& strides, int64_t offset, int64_t kept);
void ViewReduceMin(const Buffer& a, Buffer& out, const Dims& shape, const Dims& strides, int64_t offset, int64_t kept);

/// The int64 position, within its run, of the first maximum (minimum); a NaN wins.
void ReduceArgmax(const Buffer& a, Buffer& out, int64_t reduce_size);
void ReduceArgmin(const Buffer& a, Buffer& out, int64_t reduce_size);

// ---- what they ask of their arguments, on every device --------------------------------------------------------------

/// identity: whether an empty run has a result, too.
inline void CheckRuns(const char* who, const Buffer& a, const Buffer& out, DType out_dtype, int64_t reduce_size,
                      bool identity) {
  CheckSize(who, "a", a.size(), CheckedSize(who, {out.size(), reduce_size}));
  CheckDType(who, "out", out, out_dtype);
  CheckApart(who, a, out);
  if (reduce_size == 0 && out.size() > 0 && !identity) Refuse(who, "runs of 0 elements have no such element");
}

}  // namespace needle

#endif  // NEEDLE_KERNELS_REDUCTIONS_H_
