// out[i] = formula(a[i], a number).
#include "elementwise_loops.h"

namespace needle {
namespace {

/// The loop for a power that needs no logarithm; null for another.
template <typename T>
typename FloatLoops<T>::Unary LoopOfPower(T exponent) {
  const FloatLoops<T>& loops = FloatLoopsInUse<T>();
  return exponent == T(3)      ? loops.cube
         : exponent == T(-1)   ? loops.inverse
         : exponent == T(-2)   ? loops.inverse_square
         : exponent == T(0.5)  ? loops.root
         : exponent == T(-0.5) ? loops.inverse_root
                               : nullptr;
}

template <typename Op>
void WithScalar(const Buffer& a, const Scalar& val, Buffer& out) {
  VisitOnly<typename Op::types>(Op::kScalar, a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    CheckBuffer(Op::kScalar, "out", out, a.size(), ResultDType<Op, T>(a.dtype()));
    const T right = val.as<T>(Op::kScalar);
    CheckExponents<Op>(Op::kScalar, &right, 1);
    if constexpr (kHasLoop<Op, T>) {
      return RunLoop<T, ResultOf<Op, T>>(LoopOf(Op(), FloatLoopsInUse<T>()), a, right, out);
    } else if constexpr (std::is_same_v<Op, op::power> && kIsFloat<T>) {
      if (right == 2) return RunLoop<T, T>(FloatLoopsInUse<T>().mul, a, a, out);
      if (auto loop = LoopOfPower(right)) return RunLoop<T>(loop, a, out);
    }
    Map(a.size(), out.as<ResultOf<Op, T>>(),
        [left = a.as<T>(), right](int64_t i) { return Op::Apply(left[i], right); });
  });
}

template <typename... Ops>
std::vector<Row<ScalarKernel>> ScalarRowsOf() {
  return {{Ops::kScalar, &WithScalar<Ops>}...};
}

}  // namespace

std::vector<Row<ScalarKernel>> ScalarRows() {
  return ScalarRowsOf<NEEDLE_BINARY_OPS>();
}

}  // namespace needle
