// A number from Python, before it is known which type it is for.
#ifndef NEEDLE_KERNELS_SCALAR_H_
#define NEEDLE_KERNELS_SCALAR_H_

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "../checks.h"
#include "dtype.h"

namespace needle {

class Scalar {
 public:
  Scalar() = default;
  explicit Scalar(int64_t value) : is_integer_(true), integer_(value), real_(static_cast<double>(value)) {}
  explicit Scalar(double value) : real_(value) {}

  /// The number as a T: exactly for integers and bool, else a ValueError (a fraction) or an OverflowError (too large).
  template <typename T>
  T as(const char* who) const {
    if constexpr (kIsFloat<T>) {
      return static_cast<T>(real_);
    } else {
      const int64_t integer = is_integer_ ? integer_ : WholeNumber(who);
      constexpr int64_t lowest = kIsBool<T> ? 0 : std::numeric_limits<Stored<T>>::min();
      constexpr int64_t highest = kIsBool<T> ? 1 : std::numeric_limits<Stored<T>>::max();
      if (integer < lowest || integer > highest) Overflow(who);
      return static_cast<T>(integer);
    }
  }

 private:
  template <typename T>
  using Stored = std::conditional_t<kIsBool<T>, uint8_t, T>;

  int64_t WholeNumber(const char* who) const {
    if (real_ != std::floor(real_)) Refuse(who, std::to_string(real_) + " is no whole number, wanted one");  // or NaN
    if (!(std::abs(real_) < 9223372036854775808.0)) Overflow(who);
    return static_cast<int64_t>(real_);
  }

  [[noreturn]] void Overflow(const char* who) const {
    const std::string text = is_integer_ ? std::to_string(integer_) : std::to_string(real_);
    throw std::overflow_error(std::string(who) + ": " + text + " does not fit the dtype");
  }

  bool is_integer_ = false;
  int64_t integer_ = 0;
  double real_ = 0;
};

}  // namespace needle

#endif  // NEEDLE_KERNELS_SCALAR_H_
