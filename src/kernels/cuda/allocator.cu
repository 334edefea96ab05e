#include "allocator.h"

#include <algorithm>
#include <cstdlib>
#include <new>

#include "../memory.h"
#include "launch.h"

namespace needle {
namespace cuda {
namespace {

constexpr int64_t kSmallest = 512;  // two of the 256-byte lines that cudaMalloc aligns to
constexpr int64_t kLargest = int64_t{1} << 56;

/// Whether freed memory is kept.  Not where a tool watches each allocation: it could not tell the second life of a
/// piece from the first, nor its end from the end of its size class.
bool Caches() {
#ifdef CUDA_EMU_CHECK
  return false;
#else
  static const bool caches = [] {
    const char* wish = std::getenv("NEEDLE_CUDA_CACHE");
    return !(wish && std::string(wish) == "0");
  }();
  return caches;
#endif
}

int64_t BytesToReserve(int64_t bytes) {
  return Caches() ? SizeClass(bytes) : bytes;
}

}  // namespace

int64_t SizeClass(int64_t bytes) {
  if (bytes <= kSmallest) return kSmallest;
  int64_t power = kSmallest;
  while (power * 2 < bytes) power *= 2;
  const int64_t quarter = power / 4;
  return (bytes + quarter - 1) / quarter * quarter;
}

Allocator& Allocator::Get() {
  static Allocator* allocator = new Allocator;
  return *allocator;
}

void* Allocator::Allocate(int64_t bytes) {
  if (bytes == 0) return nullptr;
  if (bytes > kLargest) throw std::bad_alloc();
  const int64_t reserved = BytesToReserve(bytes);
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<void*>& kept = kept_[reserved];
  void* memory = nullptr;
  if (kept.empty()) {
    memory = FromSystem(reserved);
  } else {
    memory = kept.back();
    kept.pop_back();
    stats_.cached -= reserved;
  }
  stats_.live += reserved;
  stats_.peak = std::max(stats_.peak, stats_.live);
  return memory;
}

void Allocator::Free(void* memory, int64_t bytes) noexcept {
  if (!memory) return;
  const int64_t reserved = BytesToReserve(bytes);
  const std::lock_guard<std::mutex> lock(mutex_);
  stats_.live -= reserved;
  if (!Caches()) {
    cudaFree(memory);  // an error has no one to go to: this is a destructor, perhaps after the driver's end
    return;
  }
  try {
    kept_[reserved].push_back(memory);
    stats_.cached += reserved;
  } catch (const std::bad_alloc&) {  // no memory to note it in
    cudaFree(memory);
  }
}

void* Allocator::FromSystem(int64_t bytes) {
  void* memory = nullptr;
  cudaError_t status = cudaMalloc(&memory, static_cast<size_t>(bytes));
  if (status == cudaErrorMemoryAllocation) {  // what is kept in other sizes may be enough
    cudaGetLastError();
    Release();
    status = cudaMalloc(&memory, static_cast<size_t>(bytes));
  }
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw std::bad_alloc();
  }
  CheckStatus(status, "cudaMalloc", __FILE__, __LINE__);
  stats_.system_allocations++;
  return memory;
}

void Allocator::Release() {
  for (auto& [bytes, kept] : kept_) {
    for (void* memory : kept) {
      stats_.cached -= bytes;
      cudaFree(memory);
    }
    kept.clear();
  }
}

MemoryStats Allocator::Stats() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return stats_;
}

void Allocator::ResetPeak() {
  const std::lock_guard<std::mutex> lock(mutex_);
  stats_.peak = stats_.live;
}

void Allocator::EmptyCache() {
  const std::lock_guard<std::mutex> lock(mutex_);
  Release();
}

}  // namespace cuda

void* AllocateMemory(int64_t bytes) {
  return cuda::Allocator::Get().Allocate(bytes);
}

void FreeMemory(void* memory, int64_t bytes) noexcept {
  cuda::Allocator::Get().Free(memory, bytes);
}

}  // namespace needle
