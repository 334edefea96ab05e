// Dropout against its definition, which floats compute exactly as it is written; and the bends of networks, with their
// gradients, against their formulas.
#include <limits>

#include "bounded.h"
#include "check.h"
#include "kernels/activations.h"

using namespace needle;

// none, one, vectors and a rest, enough for three threads
static const std::vector<int64_t> kLengths = {0, 1, 3, 15, 33, 100, 30001};

template <typename T>
static std::vector<T> Dropped(std::vector<T> a, std::vector<T> uniform, double keep) {
  std::vector<T> out(a.size(), T(99));
  Buffer in = View(a), u = View(uniform), result = View(out);
  Dropout(in, u, keep, result);
  return out;
}

template <typename T>
static void ExpectDropout(int64_t size, double keep) {
  const std::vector<T> a = Reals<T>(size, 1);
  std::vector<T> uniform = Reals<T>(size, 2), wanted(a.size());
  for (T& u : uniform) u = std::abs(u);
  if (size > 2) uniform[2] = static_cast<T>(keep);  // which is kept
  for (size_t i = 0; i < a.size(); i++) {
    wanted[i] = keep > 0 && uniform[i] <= static_cast<T>(keep) ? a[i] / static_cast<T>(keep) : T(0);
  }
  ForEachSetting([&] { EXPECT(Dropped(a, uniform, keep) == wanted); });
}

TEST(dropout_equals_its_definition) {
  for (int64_t size : kLengths) {
    for (double keep : {0.0, 0.3, 0.9, 1.0}) {
      ExpectDropout<float>(size, keep);
      ExpectDropout<double>(size, keep);
    }
  }
}

TEST(dropout_hides_no_nan_and_no_infinity) {
  const float nan = std::nanf(""), infinity = std::numeric_limits<float>::infinity();
  ForEachSetting([&] {
    const std::vector<float> out = Dropped<float>({nan, nan, infinity, infinity, 1}, {0, 1, 0, 1, 1}, 0.5);
    EXPECT(std::isnan(out[0]) && std::isnan(out[1]) && out[2] == infinity && std::isnan(out[3]) && out[4] == 0);
  });
}

TEST(dropout_refuses_other_sizes_and_dtypes) {
  Buffer a(3, DType::kFloat32), less(2, DType::kFloat32), wide(3, DType::kFloat64), integers(3, DType::kInt32);
  EXPECT_THROW(std::invalid_argument, Dropout(a, less, 0.5, a));
  EXPECT_THROW(TypeError, Dropout(a, wide, 0.5, a));
  EXPECT_THROW(TypeError, Dropout(integers, integers, 0.5, integers));
}

// ---- bends ----------------------------------------------------------------------------------------------------------

/// Of an element and the gradient of its result; forward ones ignore that.
template <typename T>
using Formula = Bounded<T> (*)(Bounded<T> a, Bounded<T> grad);

template <typename T>
static Bounded<T> One() {
  return Exact<T>(1);
}

/// 2 √(2/π) (a + 0.044715 a³), and its slope.
template <typename T>
static Bounded<T> GeluAngle(Bounded<T> a) {
  return Rounded<T>(1.5957691216057308) * (a + Rounded<T>(0.044715) * a * a * a);
}
template <typename T>
static Bounded<T> GeluSlope(Bounded<T> a) {
  return Rounded<T>(1.5957691216057308) * (One<T>() + Rounded<T>(3 * 0.044715) * a * a);
}

/// The slope of a sigmoid(angle(a)) where the angle's is `slope`.
template <typename T>
static Bounded<T> GateSlope(Bounded<T> a, Bounded<T> s, Bounded<T> slope) {
  return s + a * s * (One<T>() - s) * slope;
}

template <typename T>
static const std::vector<std::pair<std::string, Formula<T>>> kFormulas = {
    {"sigmoid", [](auto a, auto) { return Sigmoid(a); }},
    {"silu", [](auto a, auto) { return a * Sigmoid(a); }},
    {"gelu", [](auto a, auto) { return a * Sigmoid(GeluAngle(a)); }},
    {"relu_backward", [](auto a, auto grad) { return grad * Exact<T>(a.value > 0); }},
    {"tanh_backward", [](auto y, auto grad) { return grad * (One<T>() - y * y); }},
    {"sigmoid_backward", [](auto y, auto grad) { return grad * y * (One<T>() - y); }},
    {"silu_backward", [](auto a, auto grad) { return grad * GateSlope(a, Sigmoid(a), One<T>()); }},
    {"gelu_backward", [](auto a, auto grad) { return grad * GateSlope(a, Sigmoid(GeluAngle(a)), GeluSlope(a)); }},
};

template <typename T>
static Formula<T> FormulaOf(const std::string& name) {
  for (const auto& [known, formula] : kFormulas<T>) {
    if (known == name) return formula;
  }
  throw std::runtime_error("no formula for " + name);
}

template <typename T, typename Run>
static void ExpectBend(const std::string& name, int64_t size, const Run& run) {
  std::vector<T> a = Reals<T>(size, 3), grad = Reals<T>(size, 4);
  for (T& value : a) value *= 4;
  ForEachSetting([&] {
    std::vector<T> out(a.size(), T(99));
    Buffer in = View(a), out_grad = View(grad), result = View(out);
    run(in, out_grad, result);
    for (size_t i = 0; i < a.size(); i++) {
      EXPECT(FormulaOf<T>(name)(Exact<T>(a[i]), Exact<T>(grad[i])).Covers(out[i]));
    }
  });
}

template <typename T>
static void ExpectBends(int64_t size) {
  for (const auto& row : ActivationRows()) {
    ExpectBend<T>(row.name, size, [&](Buffer& a, Buffer&, Buffer& out) { row.kernel(a, out); });
  }
  for (const auto& row : ActivationBackwardRows()) {
    ExpectBend<T>(row.name, size, [&](Buffer& a, Buffer& grad, Buffer& out) { row.kernel(a, grad, out); });
  }
}

TEST(bends_and_their_gradients_equal_the_formulas) {
  for (int64_t size : kLengths) {
    ExpectBends<float>(size);
    ExpectBends<double>(size);
  }
}
