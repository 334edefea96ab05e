// What a file in simd/ stands on: vectors as wide as the instruction set that it is being compiled for.
//
// Everything here, and everything in such a file but the functions that its header declares, has internal linkage, and
// no inline function of another header may be called but those that take no part in the loops: what two files share
// could be linked in the version that the machine cannot run.  tests/architecture looks for such symbols.
#ifndef NEEDLE_KERNELS_SIMD_VECTOR_H_
#define NEEDLE_KERNELS_SIMD_VECTOR_H_

#include <cstdint>

#ifndef NEEDLE_ISA
#error "files in simd/ are compiled with -DNEEDLE_ISA=baseline, avx2 or avx512"
#endif

// NEEDLE_SHUFFLE(a, b, i...): a vector of the elements with these numbers, where those of b follow those of a.
#if defined(__clang__) || __GNUC__ >= 12
#define NEEDLE_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define NEEDLE_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, decltype(a < b){__VA_ARGS__})
#endif

namespace needle {
namespace {

#if defined(__AVX512F__)
constexpr int64_t kVectorBytes = 64, kRegisters = 32;
#elif defined(__AVX2__)
constexpr int64_t kVectorBytes = 32, kRegisters = 16;
#elif defined(__aarch64__)
constexpr int64_t kVectorBytes = 16, kRegisters = 32;
#else
constexpr int64_t kVectorBytes = 16, kRegisters = 16;
#endif

inline int64_t Smaller(int64_t a, int64_t b) {  // std::min has external linkage
  return a < b ? a : b;
}

template <typename T, int64_t kBytes = kVectorBytes>
struct Simd {
  typedef T Vector __attribute__((vector_size(kBytes)));
  typedef T UnalignedVector __attribute__((vector_size(kBytes), aligned(sizeof(T))));

  static constexpr int64_t kLanes = kBytes / static_cast<int64_t>(sizeof(T));

  static Vector Load(const T* from) { return *reinterpret_cast<const UnalignedVector*>(from); }
  static void Store(T* to, Vector value) { *reinterpret_cast<UnalignedVector*>(to) = value; }
};

/// Store past the caches: the line is not read before it is written.  `to` is a multiple of kVectorBytes; where the
/// compiler has no such store it is an ordinary one.
template <typename T>
void Stream(T* to, typename Simd<T>::Vector value) {
#if defined(__clang__)
  __builtin_nontemporal_store(value, reinterpret_cast<typename Simd<T>::Vector*>(to));
#elif defined(__SSE2__)
  typedef float Floats __attribute__((vector_size(kVectorBytes)));
  auto* line = reinterpret_cast<float*>(to);
  const Floats bits = reinterpret_cast<Floats>(value);
#if defined(__AVX512F__)
  __builtin_ia32_movntps512(line, bits);
#elif defined(__AVX2__)
  __builtin_ia32_movntps256(line, bits);
#else
  __builtin_ia32_movntps(line, bits);
#endif
#else
  Simd<T>::Store(to, value);
#endif
}

/// What was streamed is written before anything that follows: other threads may read it.
inline void FinishStreams() {
#if defined(__SSE2__)
  __builtin_ia32_sfence();
#endif
}

}  // namespace
}  // namespace needle

#endif  // NEEDLE_KERNELS_SIMD_VECTOR_H_
