// Steps of optimizers against their formulas, with the bound of what rounding may do: every parameter, in place or not.
#include <deque>

#include "bounded.h"
#include "check.h"
#include "kernels/optimizer.h"

using namespace needle;

constexpr double kRate = 0.05, kDecay = 0.01;

// parameters of no elements, one, vectors and a rest; in all enough for three threads, whose shares end inside of some
static const std::vector<int64_t> kSizes = {0, 1, 37, 64, 70001, 5, 33000};

/// One array for each parameter.
template <typename T>
struct ArraySet {
  std::vector<std::vector<T>> values;
  std::deque<Buffer> buffers;  // which cannot be moved

  explicit ArraySet(unsigned seed, bool positive = false) {
    for (int64_t size : kSizes) {
      values.push_back(Reals<T>(size, seed++));
      for (T& value : values.back()) value = positive ? std::abs(value) : value;
    }
    for (std::vector<T>& each : values)
      buffers.emplace_back(each.data(), static_cast<int64_t>(each.size()), DTypeOf<T>());
  }
  ArraySet(const ArraySet&) = delete;

  operator Arrays() const {
    Arrays list;
    for (const Buffer& buffer : buffers) list.push_back(&buffer);
    return list;
  }
  operator NewArrays() {
    NewArrays list;
    for (Buffer& buffer : buffers) list.push_back(&buffer);
    return list;
  }
};

template <typename T>
struct OptimizerState {
  ArraySet<T> params{10}, grads{20}, first{30}, second{40, true};  // the second holds means of squares
};

/// A parameter and what is remembered of it, before a step or after.
template <typename T>
struct Element {
  Bounded<T> param, first, second;
};

/// step(from, to) against formula(element, gradient), with the new arrays apart from the old ones and in place.
template <typename T, typename Step, typename Formula>
static void ExpectSteps(const Step& step, const Formula& formula) {
  const OptimizerState<T> before;
  ForEachSetting([&] {
    for (bool in_place : {false, true}) {
      OptimizerState<T> from, apart;
      OptimizerState<T>& to = in_place ? from : apart;
      step(from, to);
      for (size_t p = 0; p < kSizes.size(); p++) {
        for (size_t i = 0; i < before.params.values[p].size(); i++) {
          const Element<T> x{Exact<T>(before.params.values[p][i]), Exact<T>(before.first.values[p][i]),
                             Exact<T>(before.second.values[p][i])};
          const Element<T> wanted = formula(x, Exact<T>(before.grads.values[p][i]) + Rounded<T>(kDecay) * x.param);
          EXPECT(wanted.param.Covers(to.params.values[p][i]));
          EXPECT(wanted.first.Covers(to.first.values[p][i]));
          EXPECT(wanted.second.Covers(to.second.values[p][i]));
        }
      }
    }
  });
}

/// share · a + (1 - share) · b
template <typename T>
static Bounded<T> Mixed(double share, Bounded<T> a, Bounded<T> b) {
  return Rounded<T>(share) * a + Rounded<T>(1 - share) * b;
}

template <typename T>
static void ExpectSgd(bool nesterov) {
  const double momentum = 0.9, correction = 0.19;
  const auto step = [&](OptimizerState<T>& from, OptimizerState<T>& to) {
    SgdSteps(from.params, from.grads, from.first, to.params, to.first, kRate, momentum, kDecay, correction, nesterov);
  };
  ExpectSteps<T>(step, [&](const Element<T>& x, Bounded<T> g) -> Element<T> {
    const Bounded<T> u = Mixed(momentum, x.first, g), direction = nesterov ? Mixed(momentum, u, g) : u;
    return {x.param - Rounded<T>(kRate / correction) * direction, u, x.second};
  });
}

TEST(sgd_steps_equal_the_formula) {
  for (bool nesterov : {false, true}) {
    ExpectSgd<float>(nesterov);
    ExpectSgd<double>(nesterov);
  }
}

template <typename T>
static void ExpectAdam(double shrink) {
  const double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, m_correction = 0.271, v_correction = 0.003;
  const auto step = [&](OptimizerState<T>& from, OptimizerState<T>& to) {
    AdamSteps(from.params, from.grads, from.first, from.second, to.params, to.first, to.second, kRate, beta1, beta2,
              eps, kDecay, shrink, m_correction, v_correction);
  };
  ExpectSteps<T>(step, [&](const Element<T>& x, Bounded<T> g) -> Element<T> {
    const Bounded<T> m = Mixed(beta1, x.first, g), v = Mixed(beta2, x.second, g * g);
    const Bounded<T> root = Sqrt(v) * Rounded<T>(1 / std::sqrt(v_correction)) + Rounded<T>(eps);
    return {Rounded<T>(1 - shrink) * x.param - Rounded<T>(kRate / m_correction) * m / root, m, v};
  });
}

TEST(adam_steps_equal_the_formula) {
  for (double shrink : {0.0, 0.25}) {
    ExpectAdam<float>(shrink);
    ExpectAdam<double>(shrink);
  }
}

template <typename T>
static void ExpectRmsprop(double momentum) {
  const double alpha = 0.99, eps = 1e-8;
  const auto step = [&](OptimizerState<T>& from, OptimizerState<T>& to) {
    RmspropSteps(from.params, from.grads, from.first, from.second, to.params, to.first, to.second, kRate, alpha, eps,
                 momentum, kDecay);
  };
  ExpectSteps<T>(step, [&](const Element<T>& x, Bounded<T> g) -> Element<T> {
    const Bounded<T> v = Mixed(alpha, x.second, g * g);
    const Bounded<T> u = Rounded<T>(momentum) * x.first + g / (Sqrt(v) + Rounded<T>(eps));
    return {x.param - Rounded<T>(kRate) * u, u, v};
  });
}

TEST(rmsprop_steps_equal_the_formula) {
  for (double momentum : {0.0, 0.9}) {
    ExpectRmsprop<float>(momentum);
    ExpectRmsprop<double>(momentum);
  }
}

TEST(optimizers_have_the_same_bits_on_any_number_of_threads) {
  EXPECT(SameOnAnyThreads([] {
    OptimizerState<float> x;
    AdamSteps(x.params, x.grads, x.first, x.second, x.params, x.first, x.second, kRate, 0.9, 0.999, 1e-8, kDecay, 0,
              0.1, 0.001);
    return x.params.values;
  }));
  EXPECT(SameOnAnyThreads([] { return SumOfSquares(OptimizerState<float>().grads); }));
}

TEST(optimizers_leave_what_is_nan_nan_and_nothing_else) {
  ForEachSetting([] {
    OptimizerState<float> x;
    x.grads.values[2][5] = std::nanf("");
    AdamSteps(x.params, x.grads, x.first, x.second, x.params, x.first, x.second, kRate, 0.9, 0.999, 1e-8, 0, 0, 1, 1);
    for (size_t i = 0; i < 37; i++) EXPECT(std::isnan(x.params.values[2][i]) == (i == 5));
  });
}

// squares of float are exact in double, of which each addition may lose one rounding
TEST(sum_of_squares_adds_all_arrays) {
  const OptimizerState<float> x;
  Sum<double> sum;
  for (const std::vector<float>& array : x.grads.values) {
    for (float value : array) sum.Add(Exact<double>(static_cast<double>(value) * value));
  }
  ForEachSetting([&] { EXPECT(sum.Total().Covers(SumOfSquares(x.grads))); });
  EXPECT(SumOfSquares({}) == 0);
}

TEST(optimizers_refuse_lists_that_do_not_fit) {
  OptimizerState<float> x;
  OptimizerState<double> wide;
  const auto step = [&](const Arrays& grads) {
    SgdSteps(x.params, grads, x.first, x.params, x.first, kRate, 0, 0, 1, false);
  };
  EXPECT_THROW(std::invalid_argument, step({}));
  EXPECT_THROW(TypeError, step(wide.grads));
  EXPECT_THROW(TypeError, step(Arrays(kSizes.size(), nullptr)));
}
