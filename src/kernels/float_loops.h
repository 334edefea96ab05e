// Element-wise functions of floats as loops over vectors: one table for each instruction set.
#ifndef NEEDLE_KERNELS_FLOAT_LOOPS_H_
#define NEEDLE_KERNELS_FLOAT_LOOPS_H_

#include <cstdint>

#include "isa.h"

namespace needle {

/// How a loop writes its results.  kCached: as usual.  The processor reads a line from memory before it is written, and
/// whoever reads the result next finds it in the cache.  kStreamed: past the caches, which saves that reading, a third
/// of the traffic of out = 3 a.
enum class Stores { kCached, kStreamed };

// as in formulas.h, but sub
#define NEEDLE_LOOPS_UNARY(X) X(log) X(exp) X(tanh) X(sqrt) X(abs)
#define NEEDLE_LOOPS_BINARY(X) X(add) X(sub) X(mul) X(div) X(maximum) X(minimum)
#define NEEDLE_LOOPS_COMPARE(X) X(eq) X(ne) X(ge) X(gt) X(le) X(lt)
// a³, 1/a, 1/a², √a, 1/√a
#define NEEDLE_LOOPS_POWER(X) X(cube) X(inverse) X(inverse_square) X(root) X(inverse_root)

template <typename T>
struct FloatLoops {
  using Unary = void (*)(const T* a, T* out, int64_t size, Stores stores);
  /// The steps from one element to the next: 1, or 0 where one number stands for all.
  using Binary = void (*)(const T* a, int64_t a_step, const T* b, int64_t b_step, T* out, int64_t size, Stores stores);
  using Compare = void (*)(const T* a, int64_t a_step, const T* b, int64_t b_step, float* out, int64_t size,
                           Stores stores);

#define NEEDLE_MEMBER(name) Unary name;
  NEEDLE_LOOPS_UNARY(NEEDLE_MEMBER)
  NEEDLE_LOOPS_POWER(NEEDLE_MEMBER)
#undef NEEDLE_MEMBER
#define NEEDLE_MEMBER(name) Binary name;
  NEEDLE_LOOPS_BINARY(NEEDLE_MEMBER)
#undef NEEDLE_MEMBER
#define NEEDLE_MEMBER(name) Compare name;
  NEEDLE_LOOPS_COMPARE(NEEDLE_MEMBER)
#undef NEEDLE_MEMBER
};

// the bends of neural networks, and their gradients: of a (or of the result y, which tells as much) and out_grad
#define NEEDLE_ACTIVATIONS(X) X(sigmoid) X(silu) X(gelu)
#define NEEDLE_ACTIVATIONS_BACKWARD(X) \
  X(relu_backward) X(tanh_backward) X(sigmoid_backward) X(silu_backward) X(gelu_backward)

template <typename T>
struct ActivationLoops {
#define NEEDLE_MEMBER(name) typename FloatLoops<T>::Unary name;
  NEEDLE_ACTIVATIONS(NEEDLE_MEMBER)
#undef NEEDLE_MEMBER
#define NEEDLE_MEMBER(name) typename FloatLoops<T>::Binary name;
  NEEDLE_ACTIVATIONS_BACKWARD(NEEDLE_MEMBER)
#undef NEEDLE_MEMBER
  /// out[i] = (uniform[i] <= keep) a[i] / divisor.
  void (*dropout)(const T* a, const T* uniform, T keep, T divisor, T* out, int64_t size, Stores stores);
};

NEEDLE_FOR_EACH_ISA(template <typename T> const FloatLoops<T>& TableOfFloatLoops();)
NEEDLE_FOR_EACH_ISA(template <typename T> const ActivationLoops<T>& TableOfActivations();)

}  // namespace needle

#endif  // NEEDLE_KERNELS_FLOAT_LOOPS_H_
