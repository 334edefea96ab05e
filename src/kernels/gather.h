// Reading and adding along one axis by index.
#ifndef NEEDLE_KERNELS_GATHER_H_
#define NEEDLE_KERNELS_GATHER_H_

#include <stdexcept>
#include <string>

#include "../checks.h"
#include "buffer.h"

namespace needle {

/// out[o, i, j] = a[o, indices[i], j] for a of (outer, axis_size, inner).  A negative index counts from the end; one
/// outside is an IndexError, and out is untouched.
void Take(const Buffer& a, const Buffer& indices, Buffer& out, int64_t outer, int64_t axis_size, int64_t inner);

/// The adjoint: out[o, indices[i], j] += a[o, i, j] for out of (outer, axis_size, inner).  Repeated indices add up.
void ScatterAdd(const Buffer& a, const Buffer& indices, Buffer& out, int64_t outer, int64_t axis_size, int64_t inner);

/// out = the same sums from 0, for an out that holds anything.
void ScatterSum(const Buffer& a, const Buffer& indices, Buffer& out, int64_t outer, int64_t axis_size, int64_t inner);

// ---- what they ask of their arguments, on every device --------------------------------------------------------------

/// `whole` has axis_size elements along the axis, `picked` one per index, and they share no memory.
inline void CheckPair(const char* who, const char* whole_name, const Buffer& whole, const char* picked_name,
                      const Buffer& picked, const Buffer& indices, int64_t outer, int64_t axis_size, int64_t inner) {
  CheckSize(who, whole_name, whole.size(), CheckedSize(who, {outer, axis_size, inner}));
  CheckDType(who, "indices", indices, DType::kInt64);
  CheckBuffer(who, picked_name, picked, CheckedSize(who, {outer, indices.size(), inner}), whole.dtype());
  CheckApart(who, whole, picked);
}

/// An IndexError in Python.
[[noreturn]] inline void RefuseIndex(const char* who, int64_t index, int64_t axis_size) {
  throw std::out_of_range(std::string(who) + ": index " + std::to_string(index) + " is out of bounds for an axis of " +
                          std::to_string(axis_size) + " elements");
}

}  // namespace needle

#endif  // NEEDLE_KERNELS_GATHER_H_
