// Who gives the memory of arrays and takes it back.  The course's modules ask the system, until the library hands them
// its own allocator: then one cache serves both.
#ifndef NEEDLE_MEMORY_SOURCE_H_
#define NEEDLE_MEMORY_SOURCE_H_

#include <cstdint>

namespace needle {

struct MemorySource {
  void* (*allocate)(int64_t bytes);
  void (*free)(void* memory, int64_t bytes) noexcept;
};

}  // namespace needle

#endif  // NEEDLE_MEMORY_SOURCE_H_
