#include "elementwise.h"

#include <type_traits>
#include <utility>

#include "float_loops.h"
#include "formulas.h"
#include "parallel.h"
#include "stores.h"
#include "two_views.h"

namespace needle {
namespace {

constexpr int64_t kGrain = 1 << 15;  // fewer elements are done before a second thread has woken up

/// out[i] = formula(i) for i in [0, size).
template <typename T, typename Formula>
void Map(int64_t size, T* out, const Formula& formula) {
  ParallelFor(size, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) out[i] = formula(i);
  });
}

// ---- loops over vectors, where a formula has one for floats -------------------------------------------------------

#define NEEDLE_LOOP(name)                              \
  template <typename T>                                \
  auto LoopOf(op::name, const FloatLoops<T>& loops) { \
    return loops.name;                                 \
  }
NEEDLE_LOOPS_UNARY(NEEDLE_LOOP)
NEEDLE_LOOPS_BINARY(NEEDLE_LOOP)
NEEDLE_LOOPS_COMPARE(NEEDLE_LOOP)
#undef NEEDLE_LOOP

template <typename Op, typename T, typename = void>
constexpr bool kHasLoop = false;
template <typename Op, typename T>
constexpr bool kHasLoop<Op, T, std::void_t<decltype(LoopOf(Op(), std::declval<FloatLoops<T>>()))>> = kIsFloat<T>;

template <typename T>
const FloatLoops<T>& LoopsInUse() {
  return NEEDLE_DISPATCH(TableOfFloatLoops<T>)();
}

/// out[i] = loop(a[i]), on several threads.
template <typename T>
void RunLoop(typename FloatLoops<T>::Unary loop, const Buffer& a, Buffer& out) {
  const Stores stores = StoresFor(out, {&a});
  ParallelFor(a.size(), kGrain, [&](int64_t begin, int64_t end) {
    loop(a.as<T>() + begin, out.as<T>() + begin, end - begin, stores);
  });
}

/// out[i] = loop(a[i], b[i]), on several threads.
template <typename T, typename Out, typename Loop>
void RunLoop(Loop loop, const Buffer& a, const Buffer& b, Buffer& out) {
  const Stores stores = StoresFor(out, {&a, &b});
  ParallelFor(a.size(), kGrain, [&](int64_t begin, int64_t end) {
    loop(a.as<T>() + begin, 1, b.as<T>() + begin, 1, out.as<Out>() + begin, end - begin, stores);
  });
}

/// out[i] = loop(a[i], val), on several threads.
template <typename T, typename Out, typename Loop>
void RunLoop(Loop loop, const Buffer& a, T val, Buffer& out) {
  const Stores stores = StoresFor(out, {&a});
  ParallelFor(a.size(), kGrain, [&](int64_t begin, int64_t end) {
    loop(a.as<T>() + begin, 1, &val, 0, out.as<Out>() + begin, end - begin, stores);
  });
}

/// The loop for a power that needs no logarithm; null for another.
template <typename T>
typename FloatLoops<T>::Unary LoopOfPower(T exponent) {
  const FloatLoops<T>& loops = LoopsInUse<T>();
  return exponent == T(3)      ? loops.cube
         : exponent == T(-1)   ? loops.inverse
         : exponent == T(-2)   ? loops.inverse_square
         : exponent == T(0.5)  ? loops.root
         : exponent == T(-0.5) ? loops.inverse_root
                               : nullptr;
}

// ---- the kernels --------------------------------------------------------------------------------------------------

template <typename Op, typename T>
void RefuseNegativePower(const char* who, const T* exponents, int64_t size) {
  if constexpr (std::is_same_v<Op, op::power> && kIsInteger<T>) {
    for (int64_t i = 0; i < size; i++) {
      if (exponents[i] < T(0)) Refuse(who, "integers to negative integer powers are not allowed");
    }
  }
}

template <typename Op>
void Unary(const Buffer& a, Buffer& out) {
  VisitOnly<typename Op::types>(Op::kEwise, a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    CheckBuffer(Op::kEwise, "out", out, a.size(), a.dtype());
    if constexpr (kHasLoop<Op, T>) {
      RunLoop<T>(LoopOf(Op(), LoopsInUse<T>()), a, out);
    } else {
      Map(a.size(), out.as<T>(), [in = a.as<T>()](int64_t i) { return Op::Apply(in[i]); });
    }
  });
}

template <typename Op>
void Binary(const Buffer& a, const Buffer& b, Buffer& out) {
  VisitOnly<typename Op::types>(Op::kEwise, a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    CheckBuffer(Op::kEwise, "b", b, a.size(), a.dtype());
    CheckBuffer(Op::kEwise, "out", out, a.size(), ResultDType<Op, T>(a.dtype()));
    RefuseNegativePower<Op>(Op::kEwise, b.as<T>(), b.size());
    if constexpr (kHasLoop<Op, T>) {
      RunLoop<T, ResultOf<Op, T>>(LoopOf(Op(), LoopsInUse<T>()), a, b, out);
    } else {
      Map(a.size(), out.as<ResultOf<Op, T>>(),
          [left = a.as<T>(), right = b.as<T>()](int64_t i) { return Op::Apply(left[i], right[i]); });
    }
  });
}

template <typename Op>
void WithScalar(const Buffer& a, const Scalar& val, Buffer& out) {
  VisitOnly<typename Op::types>(Op::kScalar, a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    CheckBuffer(Op::kScalar, "out", out, a.size(), ResultDType<Op, T>(a.dtype()));
    const T right = val.as<T>(Op::kScalar);
    RefuseNegativePower<Op>(Op::kScalar, &right, 1);
    if constexpr (kHasLoop<Op, T>) {
      return RunLoop<T, ResultOf<Op, T>>(LoopOf(Op(), LoopsInUse<T>()), a, right, out);
    } else if constexpr (std::is_same_v<Op, op::power> && kIsFloat<T>) {
      if (right == 2) return RunLoop<T, T>(LoopsInUse<T>().mul, a, a, out);
      if (auto loop = LoopOfPower(right)) return RunLoop<T>(loop, a, out);
    }
    Map(a.size(), out.as<ResultOf<Op, T>>(),
        [left = a.as<T>(), right](int64_t i) { return Op::Apply(left[i], right); });
  });
}

/// A loop over two views of one shape: along the last axis by the loop, the axes before one index after the other.
template <typename Op>
void OnViews(const Buffer& a, const Buffer& b, Buffer& out, const Dims& shape, const Dims& a_strides,
             int64_t a_offset, const Dims& b_strides, int64_t b_offset) {
  VisitOnly<FloatType>(Op::kView, a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    using Out = ResultOf<Op, T>;
    CheckDType(Op::kView, "b", b, a.dtype());
    CheckBuffer(Op::kView, "out", out, CheckedSize(Op::kView, shape), ResultDType<Op, T>(a.dtype()));
    CheckApart(Op::kView, a, out), CheckApart(Op::kView, b, out);
    const ReadableView left(Op::kView, a, shape, a_strides, a_offset), right(Op::kView, b, shape, b_strides, b_offset);
    if (out.size() == 0) return;
    const auto loop = LoopOf(Op(), LoopsInUse<T>());
    const TwoViews both(shape, left, right);
    both.ForEachRun(kGrain, [&](int64_t i, int64_t at_a, int64_t at_b, int64_t length) {
      loop(left.data<T>() + at_a, both.a_step(), right.data<T>() + at_b, both.b_step(), out.as<Out>() + i, length,
           Stores::kCached);  // runs may be short, and then share lines
    });
  });
}

template <typename... Ops>
std::vector<Row<ViewKernel>> ViewRowsOf() {
  return {{Ops::kView, &OnViews<Ops>}...};
}

template <typename... Ops>
std::vector<Row<UnaryKernel>> UnaryRowsOf() {
  return {{Ops::kEwise, &Unary<Ops>}...};
}

template <typename... Ops>
std::vector<Row<BinaryKernel>> BinaryRowsOf() {
  return {{Ops::kEwise, &Binary<Ops>}...};
}

template <typename... Ops>
std::vector<Row<ScalarKernel>> ScalarRowsOf() {
  return {{Ops::kScalar, &WithScalar<Ops>}...};
}

}  // namespace

std::vector<Row<UnaryKernel>> UnaryRows() {
  return UnaryRowsOf<NEEDLE_UNARY_OPS>();
}

std::vector<Row<BinaryKernel>> BinaryRows() {
  return BinaryRowsOf<NEEDLE_BINARY_OPS>();
}

std::vector<Row<ScalarKernel>> ScalarRows() {
  return ScalarRowsOf<NEEDLE_BINARY_OPS>();
}

std::vector<Row<ViewKernel>> ViewRows() {
  return ViewRowsOf<op::add, op::sub, op::mul, op::div, op::maximum, op::minimum, op::eq, op::ne, op::ge, op::gt,
                    op::le, op::lt>();
}

void Fill(Buffer& out, const Scalar& val) {
  Visit(out.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    Map(out.size(), out.as<T>(), [value = val.as<T>("fill")](int64_t) { return value; });
  });
}

void Cast(const Buffer& a, Buffer& out) {
  CheckSize("cast", "out", out.size(), a.size());
  Visit(a.dtype(), [&](auto from) {
    Visit(out.dtype(), [&](auto to) {
      using From = typename decltype(from)::type;
      using To = typename decltype(to)::type;
      Map(a.size(), out.as<To>(), [in = a.as<From>()](int64_t i) { return Convert<To>(in[i]); });
    });
  });
}

void Where(const Buffer& cond, const Buffer& a, const Buffer& b, Buffer& out) {
  CheckBuffer("where", "cond", cond, a.size(), DType::kBool);
  CheckBuffer("where", "b", b, a.size(), a.dtype());
  CheckBuffer("where", "out", out, a.size(), a.dtype());
  Visit(a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    Map(a.size(), out.as<T>(),
        [cond = cond.as<Bool>(), yes = a.as<T>(), no = b.as<T>()](int64_t i) { return cond[i] ? yes[i] : no[i]; });
  });
}

}  // namespace needle
