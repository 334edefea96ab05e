// Storage on the device, through CUDA's API: compiled once against CUDA's own, once against the emulator's.
#include "cuda_array.h"

#include <cstdint>
#include <new>

#include "cuda_check.h"

namespace needle {
namespace cuda {

scalar_t* CudaArray::Allocate(size_t size) {
  if (size > SIZE_MAX / sizeof(scalar_t)) throw std::bad_alloc();
  void* ptr = nullptr;
  const size_t bytes = size * sizeof(scalar_t);
  const cudaError_t status = cudaMalloc(&ptr, bytes ? bytes : 1);  // of nothing, too: an error then tells of no device
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw std::bad_alloc();
  }
  CheckStatus(status, "cudaMalloc", __FILE__, __LINE__);
  return static_cast<scalar_t*>(ptr);
}

void CudaArray::Free(scalar_t* ptr) {
  cudaFree(ptr);  // unchecked: a destructor must not throw, and at exit the driver may be gone already
}

void CopyFromHost(const scalar_t* from, CudaArray& to) {
  CUDA_CHECK(cudaMemcpy(to.ptr, from, to.size * sizeof(scalar_t), cudaMemcpyHostToDevice));
}

void CopyToHost(const CudaArray& from, size_t start, size_t size, scalar_t* to) {
  CUDA_CHECK(cudaMemcpy(to, from.ptr + start, size * sizeof(scalar_t), cudaMemcpyDeviceToHost));
}

void CopyWithinDevice(const CudaArray& from, CudaArray& to) {
  CUDA_CHECK(cudaMemcpy(to.ptr, from.ptr, to.size * sizeof(scalar_t), cudaMemcpyDeviceToDevice));
}

DeviceFacts FirstDevice() {
  cudaDeviceProp properties;
  CUDA_CHECK(cudaGetDeviceProperties(&properties, 0));
  return {properties.name, properties.totalGlobalMem,
          std::to_string(properties.major) + "." + std::to_string(properties.minor)};
}

}  // namespace cuda
}  // namespace needle
