// Memory by the piece.  What is freed is kept for the next one who asks for as much: on a GPU cudaMalloc and cudaFree
// wait for all kernels, and on a CPU the pages that the system hands out cost ten times as much as writing to old ones.
#ifndef NEEDLE_KERNELS_CACHING_ALLOCATOR_H_
#define NEEDLE_KERNELS_CACHING_ALLOCATOR_H_

#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

namespace needle {

struct MemoryStats {
  int64_t live = 0;                // bytes in use
  int64_t cached = 0;              // bytes kept for later
  int64_t peak = 0;                // the most that was ever live since ResetPeak
  int64_t system_allocations = 0;  // how often the system was asked for memory
};

/// Where memory really comes from; `allocate` returns nullptr if there is no more.
struct SystemMemory {
  void* (*allocate)(int64_t bytes);
  void (*free)(void* memory, int64_t bytes) noexcept;
};

struct CacheLimits {
  int64_t smallest;                 // bytes of the smallest size class, a power of two of 4 or more
  int64_t most_cached = INT64_MAX;  // bytes; with 0, nothing is kept and there are no size classes
  int64_t beyond_the_most_live =
      INT64_MAX;  // bytes by which what is live and what is cached may exceed what was ever live
};

/// Thread-safe.  On a GPU a piece may be handed on while kernels that use it still run: all kernels run in the order in
/// which they were launched, so the next owner's come after them.
class CachingAllocator {
 public:
  CachingAllocator(SystemMemory system, CacheLimits limits) : system_(system), limits_(limits) {}

  /// Memory for so many bytes, not initialised; nullptr for none.  std::bad_alloc if there is no more.
  void* Allocate(int64_t bytes);
  void Free(void* memory, int64_t bytes) noexcept;

  MemoryStats Stats();
  void ResetPeak();
  /// Give back to the system what is kept.
  void EmptyCache();

  // around fork(), so that the child does not inherit a locked mutex
  void Lock() { mutex_.lock(); }
  void Unlock() { mutex_.unlock(); }

 private:
  struct Piece {
    void* memory;
    int64_t freed_at;
  };
  using Kept = std::vector<Piece>;  // of one size class, the one freed last at the end

  bool Caches() const { return limits_.most_cached > 0; }
  int64_t BytesToReserve(int64_t bytes) const;
  void* TakeKept(int64_t reserved);
  void* FromSystem(int64_t reserved);
  void ReleaseUntil(int64_t cached);
  void ReleaseMostIdle();

  const SystemMemory system_;
  const CacheLimits limits_;
  std::mutex mutex_;
  std::array<Kept, 256> kept_;  // by the number of the size class
  int64_t clock_ = 0;           // ticks at each Free
  int64_t most_live_ = 0;
  MemoryStats stats_;
};

/// The bytes that are set aside for so many: the next of 1, 1.25, 1.5 and 1.75 times a power of two, so that a cached
/// piece fits many sizes and at most a fifth of it is idle.
int64_t SizeClass(int64_t bytes, int64_t smallest);

}  // namespace needle

#endif  // NEEDLE_KERNELS_CACHING_ALLOCATOR_H_
