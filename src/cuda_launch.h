// What the course's kernels and their launches need: enough blocks, views that a kernel can take by value, and the
// statements that register element-wise kernels.
#ifndef NEEDLE_CUDA_LAUNCH_H_
#define NEEDLE_CUDA_LAUNCH_H_

#include <cuda_runtime.h>

#include <climits>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "cuda_array.h"
#include "cuda_check.h"

namespace needle {
namespace cuda {

constexpr int kBlockThreads = 256;  // threads in a block: eight warps, and a divisor of what a multiprocessor holds
constexpr int kMaxAxes = 8;         // axes that a kernel's view may have

/// The number of blocks of `block` threads (or tiles of `block` elements) that cover `size`, the last one in part.
__host__ __device__ inline int64_t Blocks(int64_t size, int64_t block) {
  return (size + block - 1) / block;
}

/// A one-dimensional grid.  Only its x axis takes 2^31 - 1 blocks; y and z end at 65535.
inline dim3 Grid(int64_t blocks) {
  if (blocks > INT_MAX) throw std::invalid_argument("a grid of " + std::to_string(blocks) + " blocks is too large");
  return dim3(static_cast<unsigned>(blocks));
}

/// The number of this thread among all threads of a one-dimensional launch.
__device__ inline int64_t GlobalIndex() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;  // 64 bits: 2^31 elements are only 8 GB
}

/// A shape, strides and an offset as a kernel can take them: by value, since a std::vector lives on the host.
struct View {
  View(const char* who, const Dims& shape, const Dims& strides, int64_t offset) : offset(offset) {
    if (shape.size() > kMaxAxes) {
      throw std::invalid_argument(std::string(who) + ": " + std::to_string(shape.size()) + " axes, wanted at most " +
                                  std::to_string(kMaxAxes) + " on cuda; reshape first");
    }
    axes = static_cast<int>(shape.size());
    for (int axis = 0; axis < axes; axis++) {
      this->shape[axis] = shape[axis];
      this->strides[axis] = strides[axis];
    }
  }

  int axes;
  int64_t shape[kMaxAxes];
  int64_t strides[kMaxAxes];  // in elements
  int64_t offset;
};

/// A formula that is still blank: NEEDLE_EWISE_UNARY(Log, "ewise_log", Blank("hw3/cuda_ewise_log")).  A kernel cannot
/// throw, so the launch throws in its stead.
struct Blank {
  __host__ __device__ explicit constexpr Blank(const char* part) : part(part) {}
  __host__ __device__ constexpr operator scalar_t() const { return 0; }
  const char* part;
};

template <typename Value>
void ThrowIfBlank(const Value&) {}
[[noreturn]] inline void ThrowIfBlank(const Blank& blank) {
  throw NotImplemented(blank.part);
}

}  // namespace cuda
}  // namespace needle

// Throw if the formula is blank.  It is a template's, so that the host does not even compile a formula of the device.
#define NEEDLE_THROW_IF_BLANK(formula)                                             \
  [](auto a, auto b, auto val) {                                                   \
    (void)a, (void)b, (void)val;                                                   \
    if constexpr (std::is_same_v<decltype(formula), Blank>) ThrowIfBlank(formula); \
  }(scalar_t(), scalar_t(), scalar_t())

// One statement at file scope defines a kernel, its launch and its row in the table from which Python gets it.  The
// formula, which the device computes, gives out[i] from a = a[i] and, where there is a second operand, b = b[i] or the
// number val.
#define NEEDLE_EWISE_UNARY(Name, py_name, formula)                                       \
  __global__ void Ewise##Name##Kernel(const scalar_t* in, scalar_t* out, int64_t size) { \
    const int64_t i = GlobalIndex();                                                     \
    if (i >= size) return;                                                               \
    [[maybe_unused]] const scalar_t a = in[i];                                           \
    out[i] = formula;                                                                    \
  }                                                                                      \
  void Ewise##Name(const CudaArray& in, CudaArray* out) {                                \
    NEEDLE_THROW_IF_BLANK(formula);                                                      \
    const dim3 grid = Grid(Blocks(out->size, kBlockThreads));                            \
    Ewise##Name##Kernel<<<grid, kBlockThreads>>>(in.ptr, out->ptr, out->size);           \
    CUDA_CHECK(cudaGetLastError());                                                      \
  }                                                                                      \
  static const Registered<EwiseUnary> ewise_##Name##_registered(py_name, Ewise##Name)

#define NEEDLE_EWISE_BINARY(Name, py_name, formula)                                                               \
  __global__ void Ewise##Name##Kernel(const scalar_t* left, const scalar_t* right, scalar_t* out, int64_t size) { \
    const int64_t i = GlobalIndex();                                                                              \
    if (i >= size) return;                                                                                        \
    [[maybe_unused]] const scalar_t a = left[i], b = right[i];                                                    \
    out[i] = formula;                                                                                             \
  }                                                                                                               \
  void Ewise##Name(const CudaArray& left, const CudaArray& right, CudaArray* out) {                               \
    NEEDLE_THROW_IF_BLANK(formula);                                                                               \
    const dim3 grid = Grid(Blocks(out->size, kBlockThreads));                                                     \
    Ewise##Name##Kernel<<<grid, kBlockThreads>>>(left.ptr, right.ptr, out->ptr, out->size);                       \
    CUDA_CHECK(cudaGetLastError());                                                                               \
  }                                                                                                               \
  static const Registered<EwiseBinary> ewise_##Name##_registered(py_name, Ewise##Name)

#define NEEDLE_EWISE_SCALAR(Name, py_name, formula)                                                      \
  __global__ void Scalar##Name##Kernel(const scalar_t* in, [[maybe_unused]] scalar_t val, scalar_t* out, \
                                       int64_t size) {                                                   \
    const int64_t i = GlobalIndex();                                                                     \
    if (i >= size) return;                                                                               \
    [[maybe_unused]] const scalar_t a = in[i];                                                           \
    out[i] = formula;                                                                                    \
  }                                                                                                      \
  void Scalar##Name(const CudaArray& in, scalar_t val, CudaArray* out) {                                 \
    NEEDLE_THROW_IF_BLANK(formula);                                                                      \
    const dim3 grid = Grid(Blocks(out->size, kBlockThreads));                                            \
    Scalar##Name##Kernel<<<grid, kBlockThreads>>>(in.ptr, val, out->ptr, out->size);                     \
    CUDA_CHECK(cudaGetLastError());                                                                      \
  }                                                                                                      \
  static const Registered<EwiseScalar> scalar_##Name##_registered(py_name, Scalar##Name)

#endif  // NEEDLE_CUDA_LAUNCH_H_
