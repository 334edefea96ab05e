// What a + b and its like mean for each type, as in NumPy: integers wrap around, bool's sum is "or" and its product
// "and", a NaN wins every maximum and minimum.
#ifndef NEEDLE_KERNELS_ARITHMETIC_H_
#define NEEDLE_KERNELS_ARITHMETIC_H_

#include <cmath>
#include <limits>

#include "dtype.h"

namespace needle {

template <typename T>
NEEDLE_HOST_DEVICE inline T Add(T a, T b) {
  if constexpr (kIsInteger<T>) {
    using Unsigned = std::make_unsigned_t<T>;  // signed overflow is undefined
    return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  } else {
    return kIsBool<T> ? T(a || b) : T(a + b);
  }
}

template <typename T>
NEEDLE_HOST_DEVICE inline T Subtract(T a, T b) {
  if constexpr (kIsInteger<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Unsigned>(a) - static_cast<Unsigned>(b));
  } else {
    return a - b;
  }
}

template <typename T>
NEEDLE_HOST_DEVICE inline T Multiply(T a, T b) {
  if constexpr (kIsInteger<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Unsigned>(a) * static_cast<Unsigned>(b));
  } else {
    return kIsBool<T> ? T(a && b) : T(a * b);
  }
}

/// a to the power b; for integers b must not be negative.
template <typename T>
NEEDLE_HOST_DEVICE inline T Power(T a, T b) {
  if constexpr (kIsBool<T>) {
    return a || !b;
  } else if constexpr (kIsFloat<T>) {
    return b == 2 ? a * a : std::pow(a, b);  // squares are common, and pow is slow
  } else {
    T result = 1;
    for (; b > 0; b /= 2, a = Multiply(a, a)) {
      if (b % 2) result = Multiply(result, a);
    }
    return result;
  }
}

template <typename T>
NEEDLE_HOST_DEVICE inline bool IsNan(T a) {
  return a != a;
}

template <typename T>
NEEDLE_HOST_DEVICE inline T Maximum(T a, T b) {
  return a > b || IsNan(a) ? a : b;
}

template <typename T>
NEEDLE_HOST_DEVICE inline T Minimum(T a, T b) {
  return a < b || IsNan(a) ? a : b;
}

template <typename T>
NEEDLE_HOST_DEVICE inline T Absolute(T a) {
  if constexpr (kIsFloat<T>) {
    return std::abs(a);
  } else if constexpr (std::is_signed_v<T>) {
    return a < 0 ? static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(a)) : a;
  } else {
    return a;
  }
}

/// -1, 0 or 1; a NaN stays one.
template <typename T>
NEEDLE_HOST_DEVICE inline T Sign(T a) {
  if constexpr (std::is_unsigned_v<T>) {
    return static_cast<T>(a > 0);
  } else {
    return IsNan(a) ? a : static_cast<T>((a > 0) - (a < 0));
  }
}

/// Conversion between types: to bool it asks "not 0?", and a float loses its fraction.  What no integer holds (NaN,
/// infinity, too large) becomes the lowest, as on x86 in NumPy; where C++ leaves it open, this does not.
template <typename To, typename From>
NEEDLE_HOST_DEVICE inline To Convert(From a) {
  if constexpr (kIsBool<To>) {
    return To(a != From(0));
  } else if constexpr (kIsFloat<From> && kIsInteger<To>) {
    using Wide = std::conditional_t<sizeof(To) == 8, int64_t, int32_t>;
    constexpr From limit = sizeof(To) == 8 ? From(9223372036854775808.0) : From(2147483648.0);
    constexpr Wide lowest = std::numeric_limits<Wide>::min();
    const bool fits = a > -limit - (sizeof(To) < 8) && a < limit;
    return static_cast<To>(fits ? static_cast<Wide>(a) : lowest);
  } else {
    return static_cast<To>(a);
  }
}

}  // namespace needle

#endif  // NEEDLE_KERNELS_ARITHMETIC_H_
