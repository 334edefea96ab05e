// Work space that a thread keeps from one call to the next: fresh pages cost as much as filling them.
#ifndef NEEDLE_KERNELS_SCRATCH_H_
#define NEEDLE_KERNELS_SCRATCH_H_

#include <cstddef>
#include <new>

namespace needle {

class Scratch {
 public:
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { Free(); }

  /// 64-byte aligned room for `count` elements, not initialised; what was there before is gone.
  template <typename T>
  T* Get(size_t count) {
    if (count * sizeof(T) > bytes_) {
      Free();
      memory_ = ::operator new(count * sizeof(T), kAlignment);
      bytes_ = count * sizeof(T);
    }
    return static_cast<T*>(memory_);
  }

 private:
  static constexpr std::align_val_t kAlignment{64};

  void Free() {
    ::operator delete(memory_, kAlignment);
    memory_ = nullptr;
    bytes_ = 0;
  }

  void* memory_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace needle

#endif  // NEEDLE_KERNELS_SCRATCH_H_
