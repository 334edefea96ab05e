// out[i] = formula(a[i]).
#include "elementwise_loops.h"

namespace needle {
namespace {

template <typename Op>
void Unary(const Buffer& a, Buffer& out) {
  VisitOnly<typename Op::types>(Op::kEwise, a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    CheckBuffer(Op::kEwise, "out", out, a.size(), a.dtype());
    if constexpr (kHasLoop<Op, T>) {
      RunLoop<T>(LoopOf(Op(), FloatLoopsInUse<T>()), a, out);
    } else {
      Map(a.size(), out.as<T>(), [in = a.as<T>()](int64_t i) { return Op::Apply(in[i]); });
    }
  });
}

template <typename... Ops>
std::vector<Row<UnaryKernel>> UnaryRowsOf() {
  return {{Ops::kEwise, &Unary<Ops>}...};
}

}  // namespace

std::vector<Row<UnaryKernel>> UnaryRows() {
  return UnaryRowsOf<NEEDLE_UNARY_OPS>();
}

}  // namespace needle
