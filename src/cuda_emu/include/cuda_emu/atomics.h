// Atomic updates of 2, 4 and 8 bytes, of the types CUDA has them for and of float and double.
#ifndef CUDA_EMU_ATOMICS_H_
#define CUDA_EMU_ATOMICS_H_

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "synchronize.h"

namespace cuda_emu {

CUDA_EMU_API void NoteAtomic(const void* address, size_t bytes, const void* pc);  // check build: here, atomically
CUDA_EMU_API void NoteLock();                                                     // this kernel may hold locks

template <size_t bytes>
struct Bits;
template <>
struct Bits<2> {
  using type = uint16_t;
};
template <>
struct Bits<4> {
  using type = uint32_t;
};
template <>
struct Bits<8> {
  using type = uint64_t;
};

#ifdef CUDA_EMU_CHECK
// a call, so that its return address tells the line
#define CUDA_EMU_NOTE_ATOMIC(address) ::cuda_emu::NoteAtomic(address, sizeof(*(address)), __builtin_return_address(0))
#define CUDA_EMU_NOT_INLINE __attribute__((noinline))
#else
#define CUDA_EMU_NOTE_ATOMIC(address) static_cast<void>(0)
#define CUDA_EMU_NOT_INLINE
#endif

/// *address = update(*address) in one step; the old value.
template <class T, class Update>
CUDA_EMU_UNCHECKED CUDA_EMU_NOT_INLINE inline T AtomicUpdate(T* address, Update update) {
  CUDA_EMU_NOTE_ATOMIC(address);
  using U = typename Bits<sizeof(T)>::type;
  U* word = reinterpret_cast<U*>(address);
  U old_bits = __atomic_load_n(word, __ATOMIC_RELAXED), new_bits;
  T old_value;
  do {
    __builtin_memcpy(&old_value, &old_bits, sizeof(T));
    T new_value = update(old_value);
    __builtin_memcpy(&new_bits, &new_value, sizeof(T));
  } while (!__atomic_compare_exchange_n(word, &old_bits, new_bits, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return old_value;
}

template <class T>
struct Same {
  using type = T;
};
/// T, but not deduced from this argument: atomicAdd(float*, 1) is an addition of floats.
template <class T>
using SameAs = typename Same<T>::type;

}  // namespace cuda_emu

template <class T>
inline T atomicAdd(T* address, ::cuda_emu::SameAs<T> value) {
  return ::cuda_emu::AtomicUpdate(address, [value](T old) { return static_cast<T>(old + value); });
}
template <class T>
inline T atomicSub(T* address, ::cuda_emu::SameAs<T> value) {
  return ::cuda_emu::AtomicUpdate(address, [value](T old) { return static_cast<T>(old - value); });
}
template <class T>
inline T atomicMax(T* address, ::cuda_emu::SameAs<T> value) {
  return ::cuda_emu::AtomicUpdate(address, [value](T old) { return old < value ? value : old; });
}
template <class T>
inline T atomicMin(T* address, ::cuda_emu::SameAs<T> value) {
  return ::cuda_emu::AtomicUpdate(address, [value](T old) { return value < old ? value : old; });
}
template <class T>
inline T atomicAnd(T* address, ::cuda_emu::SameAs<T> value) {
  return ::cuda_emu::AtomicUpdate(address, [value](T old) { return static_cast<T>(old & value); });
}
template <class T>
inline T atomicOr(T* address, ::cuda_emu::SameAs<T> value) {
  return ::cuda_emu::AtomicUpdate(address, [value](T old) { return static_cast<T>(old | value); });
}
template <class T>
inline T atomicXor(T* address, ::cuda_emu::SameAs<T> value) {
  return ::cuda_emu::AtomicUpdate(address, [value](T old) { return static_cast<T>(old ^ value); });
}
inline unsigned atomicInc(unsigned* address, unsigned limit) {
  return ::cuda_emu::AtomicUpdate(address, [limit](unsigned old) { return old >= limit ? 0u : old + 1; });
}
inline unsigned atomicDec(unsigned* address, unsigned limit) {
  return ::cuda_emu::AtomicUpdate(address, [limit](unsigned old) { return old == 0 || old > limit ? limit : old - 1; });
}
template <class T>
inline T atomicExch(T* address, ::cuda_emu::SameAs<T> value) {
  T old = ::cuda_emu::AtomicUpdate(address, [value](T) { return value; });
  ::cuda_emu::Yield();
  return old;
}
template <class T>
inline T atomicCAS(T* address, ::cuda_emu::SameAs<T> expected, ::cuda_emu::SameAs<T> value) {
  ::cuda_emu::NoteLock();
  T old = ::cuda_emu::AtomicUpdate(address, [=](T old) { return old == expected ? value : old; });
  if (!(old == expected)) ::cuda_emu::Yield();  // whoever spins on a lock must let its holder run
  return old;
}

#endif  // CUDA_EMU_ATOMICS_H_
