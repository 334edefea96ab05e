// out[i] = formula(a[i], b[i]).
#include "elementwise_loops.h"

namespace needle {
namespace {

template <typename Op>
void Binary(const Buffer& a, const Buffer& b, Buffer& out) {
  VisitOnly<typename Op::types>(Op::kEwise, a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    CheckBuffer(Op::kEwise, "b", b, a.size(), a.dtype());
    CheckBuffer(Op::kEwise, "out", out, a.size(), ResultDType<Op, T>(a.dtype()));
    CheckExponents<Op>(Op::kEwise, b.as<T>(), b.size());
    if constexpr (kHasLoop<Op, T>) {
      RunLoop<T, ResultOf<Op, T>>(LoopOf(Op(), FloatLoopsInUse<T>()), a, b, out);
    } else {
      Map(a.size(), out.as<ResultOf<Op, T>>(),
          [left = a.as<T>(), right = b.as<T>()](int64_t i) { return Op::Apply(left[i], right[i]); });
    }
  });
}

template <typename... Ops>
std::vector<Row<BinaryKernel>> BinaryRowsOf() {
  return {{Ops::kEwise, &Binary<Ops>}...};
}

}  // namespace

std::vector<Row<BinaryKernel>> BinaryRows() {
  return BinaryRowsOf<NEEDLE_BINARY_OPS>();
}

}  // namespace needle
