#include "../memory.h"

#include <cstdlib>
#include <string>

#include "launch.h"

namespace needle {
namespace {

constexpr int64_t kSmallest = 512;  // two of the 256-byte lines that cudaMalloc aligns to

/// Whether freed memory is kept.  Not where a tool watches each allocation: it could not tell the second life of a
/// piece from the first, nor its end from the end of its size class.
bool Caches() {
#ifdef CUDA_EMU_CHECK
  return false;
#else
  const char* wish = std::getenv("NEEDLE_CUDA_CACHE");
  return !(wish && std::string(wish) == "0");
#endif
}

void* AllocateFromCuda(int64_t bytes) {
  void* memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, static_cast<size_t>(bytes));
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    return nullptr;
  }
  cuda::CheckStatus(status, "cudaMalloc", __FILE__, __LINE__);
  return memory;
}

void FreeByCuda(void* memory, int64_t /*bytes*/) noexcept {
  cudaFree(memory);  // an error has no one to go to: this is a destructor, perhaps after the driver's end
}

}  // namespace

CachingAllocator& MemoryAllocator() {
  static auto* allocator =
      new CachingAllocator({&AllocateFromCuda, &FreeByCuda}, {kSmallest, Caches() ? INT64_MAX : 0, INT64_MAX});
  return *allocator;
}

void* AllocateMemory(int64_t bytes) {
  return MemoryAllocator().Allocate(bytes);
}

void FreeMemory(void* memory, int64_t bytes) noexcept {
  MemoryAllocator().Free(memory, bytes);
}

}  // namespace needle
