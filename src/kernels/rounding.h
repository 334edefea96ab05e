// Whole numbers, rounded up: how many blocks cover a length, and how long these are together.
#ifndef NEEDLE_KERNELS_ROUNDING_H_
#define NEEDLE_KERNELS_ROUNDING_H_

#include <cstdint>

namespace needle {

/// For a >= 0 and b > 0.
constexpr int64_t CeilDiv(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

constexpr int64_t RoundUp(int64_t a, int64_t multiple) {
  return CeilDiv(a, multiple) * multiple;
}

}  // namespace needle

#endif  // NEEDLE_KERNELS_ROUNDING_H_
