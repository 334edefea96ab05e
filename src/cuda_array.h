// Storage on a CUDA device, and the kinds of kernels that the course's CUDA file registers.  There is neither Python
// nor CUDA in here, so that the bindings, which include it, are compiled once for the GPU and for its emulator.
#ifndef NEEDLE_CUDA_ARRAY_H_
#define NEEDLE_CUDA_ARRAY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "memory_source.h"
#include "registered.h"

namespace needle {
namespace cuda {

using scalar_t = float;
using Dims = std::vector<int64_t>;  // a shape, or strides in elements (which may be negative)

/// What arrays made from now on ask for memory.  Without it they ask CUDA itself, which waits for all kernels.
void SetMemorySource(const MemorySource& source);

/// Flat storage of `size` floats in the memory of the device, not initialised.  Only kernels and copies may follow ptr:
/// on the host it leads nowhere.  Shape, strides and offset live in Python.
struct CudaArray {
  explicit CudaArray(size_t size) : ptr(nullptr), size(size) { Allocate(); }
  CudaArray(const CudaArray&) = delete;
  CudaArray& operator=(const CudaArray&) = delete;
  ~CudaArray() {
    if (free_) free_(ptr, bytes_);
  }

  scalar_t* ptr;
  size_t size;

 private:
  void Allocate();

  void (*free_)(void* memory, int64_t bytes) noexcept = nullptr;  // of the source that the memory came from
  int64_t bytes_ = 0;
};

/// Copy `to.size` elements from the host's memory.
void CopyFromHost(const scalar_t* from, CudaArray& to);

/// Copy `size` elements, from the one at `start` on, to the host's memory.  Waits for all kernels before it.
void CopyToHost(const CudaArray& from, size_t start, size_t size, scalar_t* to);

/// Copy `to.size` elements within the device.
void CopyWithinDevice(const CudaArray& from, CudaArray& to);

/// The first device: its name, memory in bytes, and compute capability, as in "9.0".  std::runtime_error without one.
struct DeviceFacts {
  std::string name;
  size_t memory;
  std::string capability;
};
DeviceFacts FirstDevice();

using EwiseUnary = void (*)(const CudaArray& a, CudaArray* out);
using EwiseBinary = void (*)(const CudaArray& a, const CudaArray& b, CudaArray* out);
using EwiseScalar = void (*)(const CudaArray& a, scalar_t val, CudaArray* out);

}  // namespace cuda
}  // namespace needle

#endif  // NEEDLE_CUDA_ARRAY_H_
