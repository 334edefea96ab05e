// Device memory by the piece.  cudaMalloc and cudaFree wait for the whole GPU, so what is freed is kept for the next
// one who asks for as much.
#ifndef NEEDLE_KERNELS_CUDA_ALLOCATOR_H_
#define NEEDLE_KERNELS_CUDA_ALLOCATOR_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

namespace needle {
namespace cuda {

struct MemoryStats {
  int64_t live = 0;                // bytes in use
  int64_t cached = 0;              // bytes kept for later
  int64_t peak = 0;                // the most that was ever live since ResetPeak
  int64_t system_allocations = 0;  // calls of cudaMalloc
};

/// Behind AllocateMemory of ../memory.h.  Thread-safe.  A piece may be handed on while kernels that use it still run:
/// all kernels run in the order in which they were launched, so the next owner's come after them.
class Allocator {
 public:
  /// The one of this module.  It is never destroyed: at the end of the process the driver may go first.
  static Allocator& Get();

  /// Memory for so many bytes, not initialised; nullptr for none.  std::bad_alloc if the device has no more.
  void* Allocate(int64_t bytes);
  void Free(void* memory, int64_t bytes) noexcept;

  MemoryStats Stats() const;
  void ResetPeak();
  /// Give back to the system what is kept.
  void EmptyCache();

 private:
  void* FromSystem(int64_t bytes);
  void Release();

  mutable std::mutex mutex_;
  std::map<int64_t, std::vector<void*>> kept_;  // by size class
  MemoryStats stats_;
};

/// The bytes that are set aside for so many: the next of 1, 1.25, 1.5 and 1.75 times a power of two, so that a cached
/// piece fits many sizes and at most a fifth of it is idle.
int64_t SizeClass(int64_t bytes);

}  // namespace cuda
}  // namespace needle

#endif  // NEEDLE_KERNELS_CUDA_ALLOCATOR_H_
