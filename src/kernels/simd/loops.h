// Loops that apply a formula of vectors to arrays of any length.
#ifndef NEEDLE_KERNELS_SIMD_LOOPS_H_
#define NEEDLE_KERNELS_SIMD_LOOPS_H_

#include "../float_loops.h"
#include "math.h"

namespace needle {
namespace {

template <typename T>
struct Loops : Math<T> {
  using typename Simd<T>::Vector;
  using Simd<T>::kLanes, Simd<T>::Load, Simd<T>::Store;

  /// The last elements of an array, fewer than a vector holds; the other lanes are 0.
  static Vector LoadFirst(const T* from, int64_t count) {
    T lanes[kLanes] = {};
    CopyFirst(from, count, lanes);
    return Load(lanes);
  }
  static void StoreFirst(T* to, Vector value, int64_t count) {
    T lanes[kLanes];
    Store(lanes, value);
    CopyFirst(lanes, count, to);
  }

  /// By halves, quarters, … of a vector.
  template <int64_t kCount = kLanes / 2>
  static void CopyFirst(const T* from, int64_t count, T* to) {
    if (count & kCount) __builtin_memcpy(to, from, kCount * sizeof(T)), from += kCount, to += kCount;
    if constexpr (kCount > 1) CopyFirst<kCount / 2>(from, count, to);
  }

  // an operand: neighbours in memory, or one number for all
  struct Row {
    const T* from;
    Vector At(int64_t i) const { return Load(from + i); }
    Vector First(int64_t i, int64_t count) const { return LoadFirst(from + i, count); }
  };
  struct Number {
    Vector value;
    Vector At(int64_t) const { return value; }
    Vector First(int64_t, int64_t) const { return value; }
  };
};

/// How many elements come before the next address that is a multiple of a vector's bytes.
template <typename T>
int64_t ToBoundary(const T* at) {
  return static_cast<int64_t>(-reinterpret_cast<uintptr_t>(at) % kVectorBytes / sizeof(T));
}

/// Store the vectors value(i) from out[i] on, for i from 0 in steps of a vector, as long as they are whole; return the
/// i of what is left.
template <typename T, typename Value>
int64_t StoreWhole(T* out, int64_t size, Stores stores, const Value& value) {
  using L = Loops<T>;
  int64_t i = 0;
  if (stores == Stores::kStreamed && size >= L::kLanes) {
    // a stream begins on a boundary: what is before it, and some elements after, are stored first
    i = ToBoundary(out);
    if (i) L::Store(out, value(0));
    for (; i + L::kLanes <= size; i += L::kLanes) Stream(out + i, value(i));
    FinishStreams();
    return i;
  }
  for (; i + L::kLanes <= size; i += L::kLanes) L::Store(out + i, value(i));
  return i;
}

/// out[i] = kFormula(a[i]).
template <typename T, auto kFormula>
void Unary(const T* a, T* out, int64_t size, Stores stores) {
  using L = Loops<T>;
  const int64_t i = StoreWhole(out, size, stores, [=](int64_t i) { return kFormula(L::Load(a + i)); });
  if (i < size) L::StoreFirst(out + i, kFormula(L::LoadFirst(a + i, size - i)), size - i);
}

template <typename T, auto kFormula, typename A, typename B>
void Map(A a, B b, T* out, int64_t size, Stores stores) {
  using L = Loops<T>;
  const int64_t i = StoreWhole(out, size, stores, [=](int64_t i) { return kFormula(a.At(i), b.At(i)); });
  if (i < size) L::StoreFirst(out + i, kFormula(a.First(i, size - i), b.First(i, size - i)), size - i);
}

/// out[i] = kFormula(a[i * a_step], b[i * b_step]); a step is 1 or 0.
template <typename T, auto kFormula>
void Binary(const T* a, int64_t a_step, const T* b, int64_t b_step, T* out, int64_t size, Stores stores) {
  using L = Loops<T>;
  using Row = typename L::Row;
  using Number = typename L::Number;
  if (size == 0) return;
  const auto all = [](const T* number) { return Number{typename L::Vector{} + *number}; };
  if (a_step && b_step) return Map<T, kFormula>(Row{a}, Row{b}, out, size, stores);
  if (a_step) return Map<T, kFormula>(Row{a}, all(b), out, size, stores);
  if (b_step) return Map<T, kFormula>(all(a), Row{b}, out, size, stores);
  Map<T, kFormula>(all(a), all(b), out, size, stores);
}

}  // namespace
}  // namespace needle

#endif  // NEEDLE_KERNELS_SIMD_LOOPS_H_
