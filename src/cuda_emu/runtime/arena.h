// Device memory: a range of addresses of its own, in which each array ends at a page that nobody may touch.
//
// An array holds NaNs until it is written, its address is not used again while there are others, and outside of kernels
// it cannot be read or written at all: code of the host that uses a device pointer is told so (in the fast build up to
// a megabyte).
#ifndef CUDA_EMU_ARENA_H_
#define CUDA_EMU_ARENA_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "../include/cuda_emu/api.h"

namespace cuda_emu {

struct ShadowCell;

constexpr size_t kPage = 4096;

struct Allocation {
  char* base;
  size_t size;
  size_t first_page, n_pages;
  size_t pages_owned;  // of those, how many no later allocation has taken over
  MemoryKind kind;
  bool live;
  std::atomic<bool> open;  // kernels and copies may touch it
  unsigned serial;
  ShadowCell* cells;  // check build: who touched each word last
  uint8_t* written;   // check build: for each byte, whether it was ever written

  bool Contains(const void* pointer, size_t bytes) const {
    const auto* p = static_cast<const char*>(pointer);
    return p >= base && p <= base + size && bytes <= static_cast<size_t>(base + size - p);
  }
};

extern char *arena_begin, *arena_end;

inline bool InArena(const void* pointer) {
  const auto* p = static_cast<const char*>(pointer);
  return p >= arena_begin && p < arena_end;
}

/// Held by every call into the runtime that changes something, and by a kernel as long as it runs.
extern std::mutex api_mutex;

/// Read the options, reserve the arena, watch for faults.  Does nothing after the first time.
void Initialize();

/// `bytes` of addresses, without memory behind them yet; null if there are none.
char* Reserve(size_t bytes, bool usable);

Allocation* FindAllocation(const void* pointer);  // the one, live or freed, whose pages hold this address, or null
Allocation* FindNeighbour(const void* pointer);   // the same, or one close by
size_t LiveBytes();

/// Let kernels touch it.  False if they could before.
bool Open(Allocation& allocation);
/// Open from the handler of a fault, to be closed by CloseAfterKernel.
void OpenForKernel(Allocation& allocation);
void Close(Allocation& allocation);
void CloseAfterKernel();

}  // namespace cuda_emu

#endif  // CUDA_EMU_ARENA_H_
