// The micro-kernel for x86 with AVX-512; compiled with -mavx512f.
#include "gemm.h"

namespace needle {
namespace {
constexpr int64_t kVectorBytes = 64, kTileRows = 12, kVectors = 2;  // 24 sums, of 32 registers
}
}  // namespace needle

#include "gemm_kernel.h"

namespace needle {
template <typename T>
GemmKernels<T> Avx512GemmKernels() {
  return Kernel<T>::Table();
}
template GemmKernels<float> Avx512GemmKernels<float>();
template GemmKernels<double> Avx512GemmKernels<double>();
}  // namespace needle
