// Formulas applied to whole arrays: by a loop over vectors where there is one for floats, else by the compiler's.
#ifndef NEEDLE_KERNELS_ELEMENTWISE_LOOPS_H_
#define NEEDLE_KERNELS_ELEMENTWISE_LOOPS_H_

#include <type_traits>
#include <utility>

#include "elementwise.h"
#include "float_loops.h"
#include "formulas.h"
#include "parallel.h"
#include "stores.h"

namespace needle {

inline constexpr int64_t kElementGrain = 1 << 15;  // fewer elements are done before a second thread has woken up

/// out[i] = formula(i) for i in [0, size).
template <typename T, typename Formula>
void Map(int64_t size, T* out, const Formula& formula) {
  ParallelFor(size, kElementGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) out[i] = formula(i);
  });
}

#define NEEDLE_LOOP(name)                             \
  template <typename T>                               \
  auto LoopOf(op::name, const FloatLoops<T>& loops) { \
    return loops.name;                                \
  }
NEEDLE_LOOPS_UNARY(NEEDLE_LOOP)
NEEDLE_LOOPS_BINARY(NEEDLE_LOOP)
NEEDLE_LOOPS_COMPARE(NEEDLE_LOOP)
#undef NEEDLE_LOOP

template <typename Op, typename T, typename = void>
constexpr bool kHasLoop = false;
template <typename Op, typename T>
constexpr bool kHasLoop<Op, T, std::void_t<decltype(LoopOf(Op(), std::declval<FloatLoops<T>>()))>> = kIsFloat<T>;

template <typename T>
const FloatLoops<T>& FloatLoopsInUse() {
  return NEEDLE_DISPATCH(TableOfFloatLoops<T>)();
}

/// out[i] = loop(a[i]), on several threads.
template <typename T>
void RunLoop(typename FloatLoops<T>::Unary loop, const Buffer& a, Buffer& out) {
  const Stores stores = StoresFor(out, {&a});
  ParallelFor(a.size(), kElementGrain,
              [&](int64_t begin, int64_t end) { loop(a.as<T>() + begin, out.as<T>() + begin, end - begin, stores); });
}

/// out[i] = loop(a[i], b[i]), on several threads.
template <typename T, typename Out, typename Loop>
void RunLoop(Loop loop, const Buffer& a, const Buffer& b, Buffer& out) {
  const Stores stores = StoresFor(out, {&a, &b});
  ParallelFor(a.size(), kElementGrain, [&](int64_t begin, int64_t end) {
    loop(a.as<T>() + begin, 1, b.as<T>() + begin, 1, out.as<Out>() + begin, end - begin, stores);
  });
}

/// out[i] = loop(a[i], val), on several threads.
template <typename T, typename Out, typename Loop>
void RunLoop(Loop loop, const Buffer& a, T val, Buffer& out) {
  const Stores stores = StoresFor(out, {&a});
  ParallelFor(a.size(), kElementGrain, [&](int64_t begin, int64_t end) {
    loop(a.as<T>() + begin, 1, &val, 0, out.as<Out>() + begin, end - begin, stores);
  });
}

template <typename Op, typename T>
void CheckExponents(const char* who, const T* exponents, int64_t size) {
  if constexpr (kIsIntegerPower<Op, T>) {
    for (int64_t i = 0; i < size; i++) {
      if (exponents[i] < T(0)) RefuseNegativePower(who);
    }
  }
}

}  // namespace needle

#endif  // NEEDLE_KERNELS_ELEMENTWISE_LOOPS_H_
