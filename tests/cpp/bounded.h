// Numbers that know how far off a calculation in float may be: what a kernel computes is worked out again in double,
// and every operation adds its rounding to the bound (running error analysis; N. J. Higham, "Accuracy and stability of
// numerical algorithms", 2002, section 3.3).  So no test needs a tolerance of its own.
//
//     Sum<float> sum;                                   in any order, in vectors or not
//     for (int k = 0; k < n; k++) sum.Add(Exact<float>(a[k]) * Exact<float>(b[k]));
//     EXPECT(sum.Total().Covers(out[0]));
#ifndef NEEDLE_TESTS_BOUNDED_H_
#define NEEDLE_TESTS_BOUNDED_H_

#include <cmath>
#include <limits>

/// A value, and a bound of the error of what a calculation with T's gives for it.
template <typename T>
struct Bounded {
  double value, error;

  /// NaN for NaN, infinity for infinity, and what is finite within the bound.
  bool Covers(T got) const {
    if (std::isnan(value) || std::isinf(value)) return std::isnan(value) ? std::isnan(got) : got == value;
    return std::abs(static_cast<double>(got) - value) <= error;
  }
};

/// The error of rounding such a result.  A whole unit, twice that of T's arithmetic: the other half is for the plain
/// loop, which for double is no better, and for products of errors.
template <typename T>
double Rounding(double result) {
  return std::numeric_limits<T>::epsilon() * std::abs(result) + std::numeric_limits<T>::denorm_min();
}

template <typename T>
Bounded<T> Exact(double value) {
  return {value, 0};
}

/// A number that was worked out in double and is then rounded to T.
template <typename T>
Bounded<T> Rounded(double value) {
  return {value, Rounding<T>(value)};
}

/// `value`, to which errors of the operands contribute `error`, after one more operation that is `units` exact.
template <typename T>
Bounded<T> After(double value, double error, double units = 1) {
  return {value, error + units * Rounding<T>(value)};
}

template <typename T>
Bounded<T> operator+(Bounded<T> a, Bounded<T> b) {
  return After<T>(a.value + b.value, a.error + b.error);
}

template <typename T>
Bounded<T> operator-(Bounded<T> a, Bounded<T> b) {
  return After<T>(a.value - b.value, a.error + b.error);
}

template <typename T>
Bounded<T> operator*(Bounded<T> a, Bounded<T> b) {
  const double error = std::abs(a.value) * b.error + std::abs(b.value) * a.error + a.error * b.error;
  return After<T>(a.value * b.value, error);
}

template <typename T>
Bounded<T> operator/(Bounded<T> a, Bounded<T> b) {
  const double quotient = a.value / b.value, smallest = std::abs(b.value) - b.error;
  return After<T>(quotient, (a.error + std::abs(quotient) * b.error) / smallest);
}

// the library's own functions: their slopes, and the errors that simd/math.h states

template <typename T>
Bounded<T> Sqrt(Bounded<T> a) {
  const double root = std::sqrt(a.value);
  return After<T>(root, a.error == 0 ? 0 : a.error / (root + std::sqrt(std::max(0.0, a.value - a.error))));
}

template <typename T>
Bounded<T> Exp(Bounded<T> a) {
  const double value = std::exp(a.value);
  return After<T>(value, value * std::expm1(a.error), 2);
}

template <typename T>
Bounded<T> Log(Bounded<T> a) {
  return After<T>(std::log(a.value), a.error / (a.value - a.error), 2);
}

template <typename T>
Bounded<T> Tanh(Bounded<T> a) {
  return After<T>(std::tanh(a.value), a.error, 2);
}

template <typename T>
Bounded<T> Sigmoid(Bounded<T> a) {
  return After<T>(1 / (1 + std::exp(-a.value)), a.error / 4, 2);
}

/// The sum of some terms, added in any order.
template <typename T>
class Sum {
 public:
  void Add(Bounded<T> term) {
    total_ += term.value;
    size_ += std::abs(term.value) + term.error;
    error_ += term.error;
    count_++;
  }

  Bounded<T> Total() const { return {total_, error_ + static_cast<double>(count_) * Rounding<T>(size_)}; }

 private:
  double total_ = 0, size_ = 0, error_ = 0;
  int64_t count_ = 0;
};

#endif  // NEEDLE_TESTS_BOUNDED_H_
