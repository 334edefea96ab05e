// The micro-kernel for x86 with AVX2 and FMA; compiled with -mavx2 -mfma.
#include "gemm.h"

namespace needle {
namespace {
constexpr int64_t kVectorBytes = 32, kTileRows = 6, kVectors = 2;  // 12 sums, of 16 registers
}
}  // namespace needle

#include "gemm_kernel.h"

namespace needle {
template <typename T>
GemmKernels<T> Avx2GemmKernels() {
  return Kernel<T>::Table();
}
template GemmKernels<float> Avx2GemmKernels<float>();
template GemmKernels<double> Avx2GemmKernels<double>();
}  // namespace needle
