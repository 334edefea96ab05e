// Storage on the device, through CUDA's API: compiled once against CUDA's own, once against the emulator's.
#include "cuda_array.h"

#include <cstdint>
#include <new>

#include "cuda_check.h"

namespace needle {
namespace cuda {

namespace {

void* AllocateFromCuda(int64_t bytes) {
  void* memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, static_cast<size_t>(bytes));
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw std::bad_alloc();
  }
  CheckStatus(status, "cudaMalloc", __FILE__, __LINE__);
  return memory;
}

void FreeByCuda(void* memory, int64_t /*bytes*/) noexcept {
  cudaFree(memory);  // unchecked: a destructor must not throw, and at exit the driver may be gone already
}

MemorySource current_source{&AllocateFromCuda, &FreeByCuda};

}  // namespace

void SetMemorySource(const MemorySource& source) {
  current_source = source;
}

void CudaArray::Allocate() {
  if (size > INT64_MAX / sizeof(scalar_t)) throw std::bad_alloc();
  bytes_ = static_cast<int64_t>(size * sizeof(scalar_t));
  if (size == 0) bytes_ = 1;  // ask for something: an error then tells that there is no device
  ptr = static_cast<scalar_t*>(current_source.allocate(bytes_));
  free_ = current_source.free;
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
