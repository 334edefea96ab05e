// Work space for one call: a variable of the function that needs it.  What it gives back at the end the allocator keeps
// for the next call, so that it costs little, and no thread hoards what it once needed.
#ifndef NEEDLE_KERNELS_SCRATCH_H_
#define NEEDLE_KERNELS_SCRATCH_H_

#include <cstddef>
#include <cstdint>

#include "memory.h"

namespace needle {

class Scratch {
 public:
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { FreeMemory(memory_, bytes_); }

  /// 64-byte aligned room for `count` elements, not initialised; what was there before is gone.
  template <typename T>
  T* Get(size_t count) {
    const int64_t bytes = static_cast<int64_t>(count * sizeof(T));
    if (bytes > bytes_ || !memory_) {
      FreeMemory(memory_, bytes_);
      memory_ = nullptr;
      memory_ = AllocateMemory(bytes);
      bytes_ = bytes;
    }
    return static_cast<T*>(memory_);
  }

 private:
  void* memory_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace needle

#endif  // NEEDLE_KERNELS_SCRATCH_H_
