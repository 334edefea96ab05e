// What a kernel file of the course stands on: its storage, its blanks, and the statements that register element-wise
// kernels.  There is no Python in here, so that a kernel file compiles in half a second.
#ifndef NEEDLE_ALIGNED_ARRAY_H_
#define NEEDLE_ALIGNED_ARRAY_H_

#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#include "memory_source.h"
#include "registered.h"

namespace needle {
namespace cpu {

using scalar_t = float;
using Dims = std::vector<int64_t>;  // a shape, or strides in elements (which may be negative)

constexpr size_t kAlignment = 64;  // one cache line, and the widest vector register
constexpr size_t kTile = 8;        // matmul_tiled works on kTile x kTile blocks

inline void* AllocateAligned(int64_t bytes) {
  return ::operator new(static_cast<size_t>(bytes), std::align_val_t{kAlignment});
}

inline void FreeAligned(void* memory, int64_t /*bytes*/) noexcept {
  ::operator delete(memory, std::align_val_t{kAlignment});
}

/// What arrays made from now on ask for memory.
inline MemorySource memory_source{&AllocateAligned, &FreeAligned};

/// Flat storage of `size` floats, not initialised.  Shape, strides and offset live in Python.
struct AlignedArray {
  explicit AlignedArray(size_t size) : ptr(nullptr), size(size), free_(memory_source.free) {
    if (size > INT64_MAX / sizeof(scalar_t)) throw std::bad_alloc();
    bytes_ = static_cast<int64_t>(size * sizeof(scalar_t));
    ptr = static_cast<scalar_t*>(memory_source.allocate(bytes_));
  }
  AlignedArray(const AlignedArray&) = delete;
  AlignedArray& operator=(const AlignedArray&) = delete;
  ~AlignedArray() {
    if (free_) free_(ptr, bytes_);
  }

  scalar_t* ptr;
  size_t size;

 protected:
  AlignedArray(scalar_t* ptr, size_t size) : ptr(ptr), size(size) {}  // somebody else's memory

 private:
  void (*free_)(void* memory, int64_t bytes) noexcept = nullptr;  // of the source that the memory came from
  int64_t bytes_ = 0;
};

/// A formula that is still blank: NEEDLE_EWISE_UNARY(Log, "ewise_log", Blank("hw3/ewise_log")).
[[noreturn]] inline scalar_t Blank(const char* part) {
  throw NotImplemented(part);
}

using EwiseUnary = void (*)(const AlignedArray& a, AlignedArray* out);
using EwiseBinary = void (*)(const AlignedArray& a, const AlignedArray& b, AlignedArray* out);
using EwiseScalar = void (*)(const AlignedArray& a, scalar_t val, AlignedArray* out);

}  // namespace cpu
}  // namespace needle

// One statement at file scope defines a kernel and registers it.  The formula gives out[i] from a = a[i] and, where
// there is a second operand, b = b[i] or the number val.

#define NEEDLE_EWISE_UNARY(Name, py_name, formula)              \
  void Ewise##Name(const AlignedArray& in, AlignedArray* out) { \
    for (size_t i = 0; i < out->size; i++) {                    \
      [[maybe_unused]] const scalar_t a = in.ptr[i];            \
      out->ptr[i] = formula;                                    \
    }                                                           \
  }                                                             \
  static const Registered<EwiseUnary> ewise_##Name##_registered(py_name, Ewise##Name)

#define NEEDLE_EWISE_BINARY(Name, py_name, formula)                                          \
  void Ewise##Name(const AlignedArray& left, const AlignedArray& right, AlignedArray* out) { \
    for (size_t i = 0; i < out->size; i++) {                                                 \
      [[maybe_unused]] const scalar_t a = left.ptr[i], b = right.ptr[i];                     \
      out->ptr[i] = formula;                                                                 \
    }                                                                                        \
  }                                                                                          \
  static const Registered<EwiseBinary> ewise_##Name##_registered(py_name, Ewise##Name)

#define NEEDLE_EWISE_SCALAR(Name, py_name, formula)                                             \
  void Scalar##Name(const AlignedArray& in, [[maybe_unused]] scalar_t val, AlignedArray* out) { \
    for (size_t i = 0; i < out->size; i++) {                                                    \
      [[maybe_unused]] const scalar_t a = in.ptr[i];                                            \
      out->ptr[i] = formula;                                                                    \
    }                                                                                           \
  }                                                                                             \
  static const Registered<EwiseScalar> scalar_##Name##_registered(py_name, Scalar##Name)

#endif  // NEEDLE_ALIGNED_ARRAY_H_
