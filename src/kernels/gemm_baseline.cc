// The micro-kernel for processors that have nothing but the baseline: SSE2, NEON, or whatever the compiler makes of it.
#include "gemm.h"

namespace needle {
namespace {
constexpr int64_t kVectorBytes = 16, kTileRows = 6, kVectors = 2;  // 12 sums, of 16 registers or more
}
}  // namespace needle

#include "gemm_kernel.h"

namespace needle {
template <typename T>
GemmKernels<T> BaselineGemmKernels() {
  return Kernel<T>::Table();
}
template GemmKernels<float> BaselineGemmKernels<float>();
template GemmKernels<double> BaselineGemmKernels<double>();
}  // namespace needle
