// The formulas of the element-wise kernels, each for the types that it is defined for.  A formula is written once: the
// CPU's kernels and CUDA's apply the same.
#ifndef NEEDLE_KERNELS_FORMULAS_H_
#define NEEDLE_KERNELS_FORMULAS_H_

#include <cmath>
#include <type_traits>

#include "arithmetic.h"

namespace needle {

#define NEEDLE_UNARY(name, Types, formula)                \
  struct name {                                           \
    using types = Types;                                  \
    static constexpr const char* kEwise = "ewise_" #name; \
    template <typename T>                                 \
    NEEDLE_HOST_DEVICE static T Apply(T a) {              \
      return formula;                                     \
    }                                                     \
  };
#define NEEDLE_BINARY(name, Types, Result, formula)         \
  struct name {                                             \
    using types = Types;                                    \
    static constexpr const char* kEwise = "ewise_" #name;   \
    static constexpr const char* kScalar = "scalar_" #name; \
    static constexpr const char* kView = "view_" #name;     \
    template <typename T>                                   \
    NEEDLE_HOST_DEVICE static Result Apply(T a, T b) {      \
      return formula;                                       \
    }                                                       \
  };

// clang-format off
namespace op {
//            name     types       result  formula in a and b
NEEDLE_BINARY(add,     AnyType,    T,      Add(a, b))
NEEDLE_BINARY(sub,     NumberType, T,      Subtract(a, b))
NEEDLE_BINARY(mul,     AnyType,    T,      Multiply(a, b))
NEEDLE_BINARY(div,     FloatType,  T,      a / b)
NEEDLE_BINARY(power,   AnyType,    T,      Power(a, b))
NEEDLE_BINARY(maximum, AnyType,    T,      Maximum(a, b))
NEEDLE_BINARY(minimum, AnyType,    T,      Minimum(a, b))
NEEDLE_BINARY(eq,      AnyType,    float,  a == b)
NEEDLE_BINARY(ne,      AnyType,    float,  a != b)
NEEDLE_BINARY(ge,      AnyType,    float,  a >= b)
NEEDLE_BINARY(gt,      AnyType,    float,  a > b)
NEEDLE_BINARY(le,      AnyType,    float,  a <= b)
NEEDLE_BINARY(lt,      AnyType,    float,  a < b)

//            name     types       formula in a
NEEDLE_UNARY(log,      FloatType,  std::log(a))
NEEDLE_UNARY(exp,      FloatType,  std::exp(a))
NEEDLE_UNARY(tanh,     FloatType,  std::tanh(a))
NEEDLE_UNARY(sqrt,     FloatType,  std::sqrt(a))
NEEDLE_UNARY(sin,      FloatType,  std::sin(a))
NEEDLE_UNARY(cos,      FloatType,  std::cos(a))
NEEDLE_UNARY(abs,      NumberType, Absolute(a))
NEEDLE_UNARY(sign,     NumberType, Sign(a))
}  // namespace op
// clang-format on

template <typename Op, typename T>
using ResultOf = decltype(Op::template Apply<T>(T(), T()));

/// Whether no exponent may be negative.
template <typename Op, typename T>
constexpr bool kIsIntegerPower = std::is_same_v<Op, op::power> && kIsInteger<T>;

/// The dtype of a formula's result: the operands' own, but float32 for a comparison.
template <typename Op, typename T>
DType ResultDType(DType operands) {
  return std::is_same_v<ResultOf<Op, T>, T> ? operands : DType::kFloat32;
}

#define NEEDLE_UNARY_OPS op::log, op::exp, op::tanh, op::sqrt, op::sin, op::cos, op::abs, op::sign

#define NEEDLE_BINARY_OPS                                                                                          \
  op::add, op::sub, op::mul, op::div, op::power, op::maximum, op::minimum, op::eq, op::ne, op::ge, op::gt, op::le, \
      op::lt

}  // namespace needle

#endif  // NEEDLE_KERNELS_FORMULAS_H_
