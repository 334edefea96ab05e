// Squares of a few elements, as many as 16 bytes hold, turned over in registers: what lies column by column is read and
// written four (or two) numbers at a time.
#ifndef NEEDLE_KERNELS_SIMD_QUADS_H_
#define NEEDLE_KERNELS_SIMD_QUADS_H_

#include "vector.h"

namespace needle {
namespace {

template <typename T>
struct Quads : Simd<T, 16> {
  using Quad = typename Simd<T, 16>::Vector;
  using Simd<T, 16>::Load, Simd<T, 16>::Store;

  static constexpr int64_t kQuad = Simd<T, 16>::kLanes;

  /// kQuad rows, `stride` apart, of kQuad elements -> kQuad rows, `width` apart.  If there are fewer, the last is taken
  /// several times.
  static void Transpose(const float* from, int64_t stride, int64_t rows, float* to, int64_t width) {
    const Quad a = Load(from), b = Load(from + Smaller(1, rows - 1) * stride),
               c = Load(from + Smaller(2, rows - 1) * stride), d = Load(from + Smaller(3, rows - 1) * stride);
    const Quad ab_low = NEEDLE_SHUFFLE(a, b, 0, 4, 1, 5), ab_high = NEEDLE_SHUFFLE(a, b, 2, 6, 3, 7);
    const Quad cd_low = NEEDLE_SHUFFLE(c, d, 0, 4, 1, 5), cd_high = NEEDLE_SHUFFLE(c, d, 2, 6, 3, 7);
    Store(to, NEEDLE_SHUFFLE(ab_low, cd_low, 0, 1, 4, 5));
    Store(to + width, NEEDLE_SHUFFLE(ab_low, cd_low, 2, 3, 6, 7));
    Store(to + 2 * width, NEEDLE_SHUFFLE(ab_high, cd_high, 0, 1, 4, 5));
    Store(to + 3 * width, NEEDLE_SHUFFLE(ab_high, cd_high, 2, 3, 6, 7));
  }

  static void Transpose(const double* from, int64_t stride, int64_t rows, double* to, int64_t width) {
    const Quad a = Load(from), b = Load(from + Smaller(1, rows - 1) * stride);
    Store(to, NEEDLE_SHUFFLE(a, b, 0, 2));
    Store(to + width, NEEDLE_SHUFFLE(a, b, 1, 3));
  }
};

}  // namespace
}  // namespace needle

#endif  // NEEDLE_KERNELS_SIMD_QUADS_H_
