// out[i] from a[i], b[i] or a number: one row per kernel.
#ifndef NEEDLE_KERNELS_ELEMENTWISE_H_
#define NEEDLE_KERNELS_ELEMENTWISE_H_

#include <vector>

#include "../checks.h"
#include "buffer.h"
#include "scalar.h"

namespace needle {

template <typename Kernel>
struct Row {
  const char* name;
  Kernel kernel;
};

using UnaryKernel = void (*)(const Buffer& a, Buffer& out);
using BinaryKernel = void (*)(const Buffer& a, const Buffer& b, Buffer& out);
using ScalarKernel = void (*)(const Buffer& a, const Scalar& val, Buffer& out);

/// a and b are views of one shape, out is compact: broadcast operands need no copy.  Floats only.
using ViewKernel = void (*)(const Buffer& a, const Buffer& b, Buffer& out, const Dims& shape, const Dims& a_strides,
                            int64_t a_offset, const Dims& b_strides, int64_t b_offset);

[[noreturn]] inline void RefuseNegativePower(const char* who) {
  Refuse(who, "integers to negative integer powers are not allowed");
}

std::vector<Row<UnaryKernel>> UnaryRows();
std::vector<Row<BinaryKernel>> BinaryRows();
std::vector<Row<ScalarKernel>> ScalarRows();
std::vector<Row<ViewKernel>> ViewRows();

void Fill(Buffer& out, const Scalar& val);
void Cast(const Buffer& a, Buffer& out);
void Where(const Buffer& cond, const Buffer& a, const Buffer& b, Buffer& out);

}  // namespace needle

#endif  // NEEDLE_KERNELS_ELEMENTWISE_H_
