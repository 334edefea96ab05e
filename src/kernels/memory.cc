#include "memory.h"

#include <cstddef>
#include <new>

namespace needle {
namespace {

constexpr std::align_val_t kAlignment{64};  // one cache line, and the widest vector register

}  // namespace

void* AllocateMemory(int64_t bytes) {
  return ::operator new(static_cast<size_t>(bytes), kAlignment);
}

void FreeMemory(void* memory, int64_t /*bytes*/) noexcept {
  ::operator delete(memory, kAlignment);
}

}  // namespace needle
