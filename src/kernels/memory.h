// Where the memory of buffers comes from: memory.cc for the CPU, cuda/memory.cu for a GPU.
#ifndef NEEDLE_KERNELS_MEMORY_H_
#define NEEDLE_KERNELS_MEMORY_H_

#include <cstdint>

#include "caching_allocator.h"

namespace needle {

/// Memory for so many bytes, 64-byte aligned and not initialised.  std::bad_alloc if there is no more.
void* AllocateMemory(int64_t bytes);
void FreeMemory(void* memory, int64_t bytes) noexcept;

/// The allocator behind both.  It is never destroyed: what lives longest frees its memory after the end of main.
CachingAllocator& MemoryAllocator();

}  // namespace needle

#endif  // NEEDLE_KERNELS_MEMORY_H_
