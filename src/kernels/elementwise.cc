// What is done to elements and is no formula of operands of one type.
#include "elementwise_loops.h"

namespace needle {

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
