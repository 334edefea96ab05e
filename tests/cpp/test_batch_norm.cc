// Batch norm and its gradient against the formulas, with the bound of what rounding may do.
#include "bounded.h"
#include "check.h"
#include "kernels/batch_norm.h"

using namespace needle;

constexpr double kEps = 1e-5, kMomentum = 0.1;

/// An array (outer, channels, inner).
struct NormShape {
  int64_t outer, channels, inner;

  int64_t size() const { return outer * channels * inner; }
  int64_t Channel(int64_t i) const { return i / inner % channels; }
  double count() const { return static_cast<double>(outer * inner); }
};

// an element, less than a vector, vectors and a rest, several slabs, enough for three threads
static const std::vector<NormShape> kShapes = {{1, 1, 1}, {5, 3, 1},  {7, 33, 1}, {300, 40, 1}, {1030, 99, 1},
                                               {2, 3, 5}, {3, 2, 49}, {1, 5, 16}, {60, 3, 701}};

template <typename T>
struct ChannelMoments {
  Bounded<T> mean, variance;
};

template <typename T>
static std::vector<ChannelMoments<T>> PlainMoments(const NormShape& shape, const std::vector<T>& a) {
  std::vector<Sum<T>> sums(shape.channels), squares(shape.channels);
  std::vector<ChannelMoments<T>> moments(shape.channels);
  const Bounded<T> count = Exact<T>(shape.count());
  for (int64_t i = 0; i < shape.size(); i++) sums[shape.Channel(i)].Add(Exact<T>(a[i]));
  for (int64_t i = 0; i < shape.size(); i++) {
    const Bounded<T> distance = Exact<T>(a[i]) - sums[shape.Channel(i)].Total() / count;
    squares[shape.Channel(i)].Add(distance * distance);
  }
  for (int64_t c = 0; c < shape.channels; c++) moments[c] = {sums[c].Total() / count, squares[c].Total() / count};
  return moments;
}

template <typename T>
static void ExpectBatchNorm(const NormShape& shape, T poison = 0) {
  const int64_t channels = shape.channels;
  std::vector<T> a = Reals<T>(shape.size(), 1), weight = Reals<T>(channels, 2), bias = Reals<T>(channels, 3),
                 running_mean = Reals<T>(channels, 4), running_var = Reals<T>(channels, 5), out(a.size()),
                 mean(channels), scale(channels), mixed_mean(channels), mixed_var(channels);
  for (T& value : a) value += 2;  // a mean to take away
  if (poison != 0) a[0] = poison;
  const std::vector<ChannelMoments<T>> moments = PlainMoments(shape, a);
  Buffer in = View(a), w = View(weight), b = View(bias), rm = View(running_mean), rv = View(running_var),
         result = View(out), m = View(mean), s = View(scale), mm = View(mixed_mean), mv = View(mixed_var);
  ForEachSetting([&] {
    BatchNorm(in, w, b, rm, rv, result, m, s, mm, mv, shape.outer, shape.inner, kEps, kMomentum);
    const auto mixed = [](T running, Bounded<T> observed) {
      return Rounded<T>(1 - kMomentum) * Exact<T>(running) + Rounded<T>(kMomentum) * observed;
    };
    for (int64_t c = 0; c < channels; c++) {
      const auto& [centre, variance] = moments[c];
      EXPECT(centre.Covers(mean[c]));
      EXPECT((Exact<T>(1) / Sqrt(variance + Exact<T>(kEps))).Covers(scale[c]));
      EXPECT(mixed(running_mean[c], centre).Covers(mixed_mean[c]));
      EXPECT(mixed(running_var[c], variance).Covers(mixed_var[c]));
    }
    for (int64_t i = 0; i < shape.size(); i++) {
      const int64_t c = shape.Channel(i);
      const Bounded<T> normal = (Exact<T>(a[i]) - Rounded<T>(mean[c])) * Exact<T>(scale[c]);
      EXPECT((normal * Exact<T>(weight[c]) + Exact<T>(bias[c])).Covers(out[i]));
    }
  });
}

TEST(batch_norm_equals_the_formulas) {
  for (const NormShape& shape : kShapes) {
    ExpectBatchNorm<float>(shape);
    ExpectBatchNorm<double>(shape);
  }
}

TEST(batch_norm_of_a_nan_is_nan_in_its_channel_alone) {
  ExpectBatchNorm<float>({3, 4, 5}, std::nanf(""));
  ExpectBatchNorm<float>({9, 20, 1}, std::nanf(""));
}

template <typename T>
static void ExpectBatchNormBackward(const NormShape& shape) {
  const int64_t channels = shape.channels;
  std::vector<T> a = Reals<T>(shape.size(), 6), grad = Reals<T>(shape.size(), 7), weight = Reals<T>(channels, 8),
                 mean = Reals<T>(channels, 9), scale = Reals<T>(channels, 10), to_a(a.size()), to_weight(channels),
                 to_bias(channels);
  std::vector<Sum<T>> sums(channels), products(channels);
  const auto distance = [&](int64_t i) { return Exact<T>(a[i]) - Exact<T>(mean[shape.Channel(i)]); };
  for (int64_t i = 0; i < shape.size(); i++) {
    sums[shape.Channel(i)].Add(Exact<T>(grad[i]));
    products[shape.Channel(i)].Add(Exact<T>(grad[i]) * distance(i));
  }
  Buffer in = View(a), w = View(weight), m = View(mean), s = View(scale), g = View(grad), da = View(to_a),
         dw = View(to_weight), db = View(to_bias);
  ForEachSetting([&] {
    BatchNormBackward(in, w, m, s, g, da, dw, db, shape.outer, shape.inner);
    for (int64_t c = 0; c < channels; c++) {
      EXPECT(sums[c].Total().Covers(to_bias[c]));
      EXPECT((products[c].Total() * Exact<T>(scale[c])).Covers(to_weight[c]));
    }
    for (int64_t i = 0; i < shape.size(); i++) {
      const int64_t c = shape.Channel(i);
      const Bounded<T> by = Exact<T>(scale[c]), count = Exact<T>(shape.count());
      const Bounded<T> shift = sums[c].Total() / count, slope = by * by * products[c].Total() / count;
      EXPECT((by * Exact<T>(weight[c]) * (Exact<T>(grad[i]) - shift - distance(i) * slope)).Covers(to_a[i]));
    }
  });
}

TEST(batch_norm_backward_equals_the_formulas) {
  for (const NormShape& shape : kShapes) {
    ExpectBatchNormBackward<float>(shape);
    ExpectBatchNormBackward<double>(shape);
  }
}

TEST(batch_norm_has_the_same_bits_on_any_number_of_threads) {
  const NormShape shape{1030, 99, 1};
  std::vector<float> a = Reals<float>(shape.size(), 11), ones(99, 1), zeros(99), out(a.size()), mean(99), scale(99),
                     mixed_mean(99), mixed_var(99);
  Buffer in = View(a), one = View(ones), zero = View(zeros), result = View(out), m = View(mean), s = View(scale),
         mm = View(mixed_mean), mv = View(mixed_var);
  EXPECT(SameOnAnyThreads([&] {
    BatchNorm(in, one, zero, zero, one, result, m, s, mm, mv, shape.outer, shape.inner, kEps, kMomentum);
    return out;
  }));
}

TEST(batch_norm_refuses_an_empty_channel) {
  Buffer nothing(0, DType::kFloat32), channels(3, DType::kFloat32), a(3, DType::kFloat32), b(3, DType::kFloat32),
      c(3, DType::kFloat32), d(3, DType::kFloat32);
  EXPECT_THROW(std::invalid_argument,
               BatchNorm(nothing, channels, channels, channels, channels, nothing, a, b, c, d, 0, 1, kEps, kMomentum));
}
