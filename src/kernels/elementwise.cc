#include "elementwise.h"

#include "formulas.h"
#include "parallel.h"

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
    Map(a.size(), out.as<T>(), [in = a.as<T>()](int64_t i) { return Op::Apply(in[i]); });
  });
}

template <typename Op>
void Binary(const Buffer& a, const Buffer& b, Buffer& out) {
  VisitOnly<typename Op::types>(Op::kEwise, a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    CheckBuffer(Op::kEwise, "b", b, a.size(), a.dtype());
    CheckBuffer(Op::kEwise, "out", out, a.size(), ResultDType<Op, T>(a.dtype()));
    RefuseNegativePower<Op>(Op::kEwise, b.as<T>(), b.size());
    Map(a.size(), out.as<ResultOf<Op, T>>(),
        [left = a.as<T>(), right = b.as<T>()](int64_t i) { return Op::Apply(left[i], right[i]); });
  });
}

template <typename Op>
void WithScalar(const Buffer& a, const Scalar& val, Buffer& out) {
  VisitOnly<typename Op::types>(Op::kScalar, a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    CheckBuffer(Op::kScalar, "out", out, a.size(), ResultDType<Op, T>(a.dtype()));
    const T right = val.as<T>(Op::kScalar);
    RefuseNegativePower<Op>(Op::kScalar, &right, 1);
    Map(a.size(), out.as<ResultOf<Op, T>>(),
        [left = a.as<T>(), right](int64_t i) { return Op::Apply(left[i], right); });
  });
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
