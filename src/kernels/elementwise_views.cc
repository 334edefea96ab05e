// out[i] = formula(a[i], b[i]), where a and b are views.
#include "elementwise_loops.h"
#include "two_views.h"

namespace needle {
namespace {

/// A loop over two views: along the last axis by the loop, the axes before one index after the other.
template <typename T, typename Out, typename Loop>
void RunLoop(Loop loop, const TwoViews& both, const ReadableView& a, const ReadableView& b, Buffer& out) {
  both.ForEachRun(kElementGrain, [&](int64_t i, int64_t at_a, int64_t at_b, int64_t length) {
    loop(a.data<T>() + at_a, both.a_step(), b.data<T>() + at_b, both.b_step(), out.as<Out>() + i, length,
         Stores::kCached);  // runs may be short, and then share lines
  });
}

template <typename Op>
void OnViews(const Buffer& a, const Buffer& b, Buffer& out, const Dims& shape, const Dims& a_strides, int64_t a_offset,
             const Dims& b_strides, int64_t b_offset) {
  VisitOnly<FloatType>(Op::kView, a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    CheckDType(Op::kView, "b", b, a.dtype());
    CheckBuffer(Op::kView, "out", out, CheckedSize(Op::kView, shape), ResultDType<Op, T>(a.dtype()));
    CheckApart(Op::kView, a, out), CheckApart(Op::kView, b, out);
    const ReadableView left(Op::kView, a, shape, a_strides, a_offset), right(Op::kView, b, shape, b_strides, b_offset);
    if (out.size() == 0) return;
    RunLoop<T, ResultOf<Op, T>>(LoopOf(Op(), FloatLoopsInUse<T>()), TwoViews(shape, left, right), left, right, out);
  });
}

template <typename... Ops>
std::vector<Row<ViewKernel>> ViewRowsOf() {
  return {{Ops::kView, &OnViews<Ops>}...};
}

}  // namespace

std::vector<Row<ViewKernel>> ViewRows() {
  return ViewRowsOf<op::add, op::sub, op::mul, op::div, op::maximum, op::minimum, op::eq, op::ne, op::ge, op::gt,
                    op::le, op::lt>();
}

}  // namespace needle
