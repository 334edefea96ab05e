// For hunting wrong kernels, with NEEDLE_MEMORY_DEBUG=1: fresh memory is full of NaN, and who writes before or after a
// piece is found out when it is freed.
#ifndef NEEDLE_KERNELS_MEMORY_GUARD_H_
#define NEEDLE_KERNELS_MEMORY_GUARD_H_

#include <cstdint>

namespace needle {

/// Whether the environment asks for it.
bool GuardsMemory();

/// As AllocateMemory.  Throws std::runtime_error if a piece that was freed since the last call had been written around.
void* AllocateGuarded(int64_t bytes);
void FreeGuarded(void* memory, int64_t bytes) noexcept;

}  // namespace needle

#endif  // NEEDLE_KERNELS_MEMORY_GUARD_H_
