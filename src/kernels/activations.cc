#include "activations.h"

#include <limits>

#include "float_loops.h"
#include "parallel.h"
#include "stores.h"

namespace needle {
namespace {

constexpr int64_t kGrain = 1 << 13;  // elements; an exponential is worth many additions

template <typename T>
const ActivationLoops<T>& LoopsInUse() {
  return NEEDLE_DISPATCH(TableOfActivations<T>)();
}

#define NEEDLE_ACTIVATION(name)                 \
  struct name##_row {                           \
    static constexpr const char* kName = #name; \
    template <typename T>                       \
    static auto Loop() {                        \
      return LoopsInUse<T>().name;              \
    }                                           \
  };
NEEDLE_ACTIVATIONS(NEEDLE_ACTIVATION)
NEEDLE_ACTIVATIONS_BACKWARD(NEEDLE_ACTIVATION)
#undef NEEDLE_ACTIVATION

template <typename Activation>
void Forward(const Buffer& a, Buffer& out) {
  CheckBuffer(Activation::kName, "out", out, a.size(), a.dtype());
  VisitOnly<FloatType>(Activation::kName, a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const Stores stores = StoresFor(out, {&a});
    ParallelFor(a.size(), kGrain, [&, loop = Activation::template Loop<T>()](int64_t begin, int64_t end) {
      loop(a.as<T>() + begin, out.as<T>() + begin, end - begin, stores);
    });
  });
}

template <typename Activation>
void Backward(const Buffer& a, const Buffer& out_grad, Buffer& out) {
  CheckBuffer(Activation::kName, "out_grad", out_grad, a.size(), a.dtype());
  CheckBuffer(Activation::kName, "out", out, a.size(), a.dtype());
  VisitOnly<FloatType>(Activation::kName, a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const Stores stores = StoresFor(out, {&a, &out_grad});
    ParallelFor(a.size(), kGrain, [&, loop = Activation::template Loop<T>()](int64_t begin, int64_t end) {
      loop(a.as<T>() + begin, 1, out_grad.as<T>() + begin, 1, out.as<T>() + begin, end - begin, stores);
    });
  });
}

}  // namespace

std::vector<Row<UnaryKernel>> ActivationRows() {
#define NEEDLE_ROW(name) {#name, &Forward<name##_row>},
  return {NEEDLE_ACTIVATIONS(NEEDLE_ROW)};
#undef NEEDLE_ROW
}

std::vector<Row<BinaryKernel>> ActivationBackwardRows() {
#define NEEDLE_ROW(name) {#name, &Backward<name##_row>},
  return {NEEDLE_ACTIVATIONS_BACKWARD(NEEDLE_ROW)};
#undef NEEDLE_ROW
}

void Dropout(const Buffer& a, const Buffer& uniform, double keep, Buffer& out) {
  CheckBuffer("dropout", "uniform", uniform, a.size(), a.dtype());
  CheckBuffer("dropout", "out", out, a.size(), a.dtype());
  VisitOnly<FloatType>("dropout", a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const T share = static_cast<T>(keep), divisor = keep == 0 ? std::numeric_limits<T>::infinity() : share;
    const Stores stores = StoresFor(out, {&a, &uniform});
    ParallelFor(a.size(), kGrain, [&, loop = LoopsInUse<T>().dropout](int64_t begin, int64_t end) {
      loop(a.as<T>() + begin, uniform.as<T>() + begin, share, divisor, out.as<T>() + begin, end - begin, stores);
    });
  });
}

}  // namespace needle
