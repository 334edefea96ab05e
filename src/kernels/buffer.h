// Flat storage of one dtype: what all kernels take and fill.  In the module of CUDA's kernels it is memory of the GPU.
#ifndef NEEDLE_KERNELS_BUFFER_H_
#define NEEDLE_KERNELS_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "dtype.h"

// Each module of kernels has a Buffer of its own kind, so that Python cannot hand the CPU's to a GPU's kernel.
#ifndef NEEDLE_KERNELS_MODULE
#define NEEDLE_KERNELS_MODULE kernels_cpu
#endif

namespace needle {
inline namespace NEEDLE_KERNELS_MODULE {

class Buffer {
 public:
  /// Memory of its own, 64-byte aligned and not initialised.
  Buffer(int64_t size, DType dtype);
  /// Memory of somebody else's, who lives as long as `owner` does.
  Buffer(void* memory, int64_t size, DType dtype, std::shared_ptr<void> owner = nullptr);
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  // zeroed, so that an object whose constructor never ran (which Python can make) is an empty buffer
  static void* operator new(size_t bytes);
  static void operator delete(void* memory);

  int64_t size() const { return size_; }
  int64_t bytes() const { return size_ * ItemSize(dtype_); }
  DType dtype() const { return dtype_; }
  void* data() { return data_; }
  const void* data() const { return data_; }
  bool owns_memory() const { return owns_; }

  template <typename T>
  T* as() {
    return static_cast<T*>(data_);
  }
  template <typename T>
  const T* as() const {
    return static_cast<const T*>(data_);
  }

  bool Overlaps(const Buffer& other) const;

 private:
  void* data_;
  int64_t size_;
  DType dtype_;
  bool owns_;
  std::shared_ptr<void> owner_;
};

}  // namespace NEEDLE_KERNELS_MODULE

/// Bytes that live buffers own.
int64_t AllocatedBytes();

// ---- what kernels ask of their arguments --------------------------------------------------------------------------

void CheckDType(const char* who, const char* what, const Buffer& buffer, DType wanted);
void CheckBuffer(const char* who, const char* what, const Buffer& buffer, int64_t size, DType dtype);
void CheckApart(const char* who, const Buffer& input, const Buffer& out);

}  // namespace needle

#endif  // NEEDLE_KERNELS_BUFFER_H_
