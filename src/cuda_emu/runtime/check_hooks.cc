// What the compiler calls.  The names, arguments and results are those of ThreadSanitizer and of
// UndefinedBehaviorSanitizer, as documented by GCC and Clang; what happens is ours.
#include <cstdint>
#include <cstring>
#include <string>

#include "check.h"
#include "errors.h"
#include "worker.h"

#define CUDA_EMU_HOOK __attribute__((visibility("default")))
#define CUDA_EMU_CALLER __builtin_return_address(0)

using cuda_emu::Check;

static inline void Touched(const volatile void* address, unsigned bytes, bool write, const void* pc) {
  Check({static_cast<const char*>(const_cast<const void*>(address)), bytes, write, false, pc});
}

static inline void TouchedRange(const void* address, size_t bytes, bool write, const void* pc) {
  const auto* p = static_cast<const char*>(address);
  for (size_t i = 0; i < bytes; i += 4) Touched(p + i, static_cast<unsigned>(bytes - i < 4 ? bytes - i : 4), write, pc);
}

extern "C" {

// ---- loads and stores

#define CUDA_EMU_ACCESS(name, bytes, write)    \
  CUDA_EMU_HOOK void name(void* p) {           \
    Touched(p, bytes, write, CUDA_EMU_CALLER); \
  }
#define CUDA_EMU_ACCESSES(bytes)                              \
  CUDA_EMU_ACCESS(__tsan_read##bytes, bytes, false)           \
  CUDA_EMU_ACCESS(__tsan_write##bytes, bytes, true)           \
  CUDA_EMU_ACCESS(__tsan_unaligned_read##bytes, bytes, false) \
  CUDA_EMU_ACCESS(__tsan_unaligned_write##bytes, bytes, true) \
  CUDA_EMU_ACCESS(__tsan_volatile_read##bytes, bytes, false)  \
  CUDA_EMU_ACCESS(__tsan_volatile_write##bytes, bytes, true)
CUDA_EMU_ACCESSES(1)
CUDA_EMU_ACCESSES(2)
CUDA_EMU_ACCESSES(4)
CUDA_EMU_ACCESSES(8)
CUDA_EMU_ACCESSES(16)

#define CUDA_EMU_READ_WRITE(bytes)                       \
  CUDA_EMU_HOOK void __tsan_read_write##bytes(void* p) { \
    Touched(p, bytes, false, CUDA_EMU_CALLER);           \
    Touched(p, bytes, true, CUDA_EMU_CALLER);            \
  }
CUDA_EMU_READ_WRITE(1)
CUDA_EMU_READ_WRITE(2)
CUDA_EMU_READ_WRITE(4)
CUDA_EMU_READ_WRITE(8)
CUDA_EMU_READ_WRITE(16)

CUDA_EMU_HOOK void __tsan_read_range(void* p, size_t bytes) {
  TouchedRange(p, bytes, false, CUDA_EMU_CALLER);
}
CUDA_EMU_HOOK void __tsan_write_range(void* p, size_t bytes) {
  TouchedRange(p, bytes, true, CUDA_EMU_CALLER);
}
CUDA_EMU_HOOK void* __tsan_memcpy(void* to, const void* from, size_t bytes) {
  TouchedRange(from, bytes, false, CUDA_EMU_CALLER);
  TouchedRange(to, bytes, true, CUDA_EMU_CALLER);
  return std::memcpy(to, from, bytes);
}
CUDA_EMU_HOOK void* __tsan_memmove(void* to, const void* from, size_t bytes) {
  TouchedRange(from, bytes, false, CUDA_EMU_CALLER);
  TouchedRange(to, bytes, true, CUDA_EMU_CALLER);
  return std::memmove(to, from, bytes);
}
CUDA_EMU_HOOK void* __tsan_memset(void* to, int value, size_t bytes) {
  TouchedRange(to, bytes, true, CUDA_EMU_CALLER);
  return std::memset(to, value, bytes);
}

// ---- what is of no interest here

CUDA_EMU_HOOK void __tsan_init() {}
CUDA_EMU_HOOK void __tsan_func_entry(void*) {}
CUDA_EMU_HOOK void __tsan_func_exit() {}
CUDA_EMU_HOOK void __tsan_vptr_update(void**, void*) {}
CUDA_EMU_HOOK void __tsan_vptr_read(void**) {}
CUDA_EMU_HOOK void __tsan_atomic_thread_fence(int) {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
CUDA_EMU_HOOK void __tsan_atomic_signal_fence(int) {}

// ---- atomics of C++, which host code uses (CUDA's own are in atomics.h): done in the strongest order

#define CUDA_EMU_FETCH(bits, T, name)                                         \
  CUDA_EMU_HOOK T __tsan_atomic##bits##_##name(volatile T* p, T value, int) { \
    return __atomic_##name(p, value, __ATOMIC_SEQ_CST);                       \
  }
#define CUDA_EMU_EXCHANGE(bits, T, name, weak)                                                                     \
  CUDA_EMU_HOOK int __tsan_atomic##bits##_compare_exchange_##name(volatile T* p, T* expected, T value, int, int) { \
    return __atomic_compare_exchange_n(p, expected, value, weak, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);              \
  }
#define CUDA_EMU_ATOMICS_OF(bits, T)                                                                         \
  CUDA_EMU_HOOK T __tsan_atomic##bits##_load(const volatile T* p, int) {                                     \
    return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                                             \
  }                                                                                                          \
  CUDA_EMU_HOOK void __tsan_atomic##bits##_store(volatile T* p, T value, int) {                              \
    __atomic_store_n(p, value, __ATOMIC_SEQ_CST);                                                            \
  }                                                                                                          \
  CUDA_EMU_HOOK T __tsan_atomic##bits##_exchange(volatile T* p, T value, int) {                              \
    return __atomic_exchange_n(p, value, __ATOMIC_SEQ_CST);                                                  \
  }                                                                                                          \
  CUDA_EMU_FETCH(bits, T, fetch_add)                                                                         \
  CUDA_EMU_FETCH(bits, T, fetch_sub)                                                                         \
  CUDA_EMU_FETCH(bits, T, fetch_and)                                                                         \
  CUDA_EMU_FETCH(bits, T, fetch_or)                                                                          \
  CUDA_EMU_FETCH(bits, T, fetch_xor)                                                                         \
  CUDA_EMU_FETCH(bits, T, fetch_nand)                                                                        \
  CUDA_EMU_EXCHANGE(bits, T, strong, false)                                                                  \
  CUDA_EMU_EXCHANGE(bits, T, weak, true)                                                                     \
  CUDA_EMU_HOOK T __tsan_atomic##bits##_compare_exchange_val(volatile T* p, T expected, T value, int, int) { \
    __atomic_compare_exchange_n(p, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);             \
    return expected;                                                                                         \
  }
CUDA_EMU_ATOMICS_OF(8, uint8_t)
CUDA_EMU_ATOMICS_OF(16, uint16_t)
CUDA_EMU_ATOMICS_OF(32, uint32_t)
CUDA_EMU_ATOMICS_OF(64, uint64_t)

// ---- -fsanitize=bounds,alignment: what the compiler knows of types

struct SourceLocation {
  const char* file;
  uint32_t line, column;
};
struct TypeDescriptor {
  uint16_t kind, info;
  char name[1];
};
struct OutOfBounds {
  SourceLocation location;
  const TypeDescriptor *array, *index;
};
struct TypeMismatch {
  SourceLocation location;
  const TypeDescriptor* type;
  unsigned char log_alignment, kind;
};

static cuda_emu::Site SiteOf(const SourceLocation& location) {
  return {location.file, static_cast<int>(location.line), "access"};
}

// 'float [16][8]', or 'float[16][8]' from Clang, has the extents [16][8]', and not the shorter [8]'.
static bool EndsWithExtents(const std::string& type, const std::string& extents) {
  if (type.size() <= extents.size()) return false;
  const size_t begin = type.size() - extents.size();
  return type.compare(begin, extents.size(), extents) == 0 && type[begin - 1] != ']';
}

// "; `a_tile` and `b_tile` are such arrays": the compiler tells the type of the array, not its name.
static std::string SharedOfType(const std::string& type) {
  std::string names;
  int count = 0;
  for (unsigned i = 0; i < cuda_emu::this_worker->n_variables; i++) {
    const cuda_emu::SharedVariable& variable = cuda_emu::this_worker->variables[i];
    std::string extents = "'";
    for (uint32_t axis = variable.shape->rank < 4 ? variable.shape->rank : 4; axis-- > 0;) {
      extents = "[" + std::to_string(variable.shape->extents[axis]) + "]" + extents;
      if (!EndsWithExtents(type, extents)) continue;
      names += std::string(count++ > 0 ? " and `" : "; `") + variable.name + "`";
      break;
    }
  }
  return count == 0 ? "" : names + (count == 1 ? " is such an array" : " are such arrays");
}

CUDA_EMU_HOOK void __ubsan_handle_out_of_bounds_abort(OutOfBounds* data, uintptr_t index) {
  const cuda_emu::Site site = SiteOf(data->location);
  cuda_emu::Fail(cudaErrorIllegalAddress,
                 "out-of-bounds index " + std::to_string(static_cast<int>(index)) + " of an array of type " +
                     data->array->name + SharedOfType(data->array->name),
                 {nullptr, nullptr, &site});
}
CUDA_EMU_HOOK void __ubsan_handle_out_of_bounds(OutOfBounds* data, uintptr_t index) {
  __ubsan_handle_out_of_bounds_abort(data, index);
}

CUDA_EMU_HOOK void __ubsan_handle_type_mismatch_v1_abort(TypeMismatch* data, uintptr_t address) {
  if (!cuda_emu::InKernel()) return;
  const cuda_emu::Site site = SiteOf(data->location);
  cuda_emu::Fail(cudaErrorMisalignedAddress,
                 std::string("misaligned access: the type ") + data->type->name +
                     " needs an address that is a multiple of " + std::to_string(1u << data->log_alignment) +
                     ", and this one is not: " + cuda_emu::GlobalName(reinterpret_cast<const char*>(address)),
                 {nullptr, nullptr, &site});
}
CUDA_EMU_HOOK void __ubsan_handle_type_mismatch_v1(TypeMismatch* data, uintptr_t address) {
  __ubsan_handle_type_mismatch_v1_abort(data, address);
}
CUDA_EMU_HOOK void __ubsan_handle_alignment_assumption_abort(void*, uintptr_t, uintptr_t, uintptr_t) {}
CUDA_EMU_HOOK void __ubsan_handle_alignment_assumption(void*, uintptr_t, uintptr_t, uintptr_t) {}
}
