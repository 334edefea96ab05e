// Layer norm and its gradients against the formulas, with the bound of what rounding may do.
#include "bounded.h"
#include "check.h"
#include "kernels/layer_norm.h"

using namespace needle;

constexpr double kEps = 1e-5;

struct LayerShape {
  int64_t rows, cols;
};

// none, one, less than a vector, vectors and a rest, several blocks of a sum, enough for three threads
static const std::vector<LayerShape> kShapes = {{0, 3}, {1, 1}, {2, 3}, {3, 16}, {5, 37}, {2, 1300}, {700, 41}};

/// A row's distances from its mean, and 1 / √(variance + eps).
template <typename T>
struct RowMoments {
  Bounded<T> mean, scale;

  RowMoments(const T* row, int64_t cols) {
    const Bounded<T> count = Exact<T>(static_cast<double>(cols));
    Sum<T> sum, squares;
    for (int64_t j = 0; j < cols; j++) sum.Add(Exact<T>(row[j]));
    mean = sum.Total() / count;
    for (int64_t j = 0; j < cols; j++) {
      const Bounded<T> distance = Exact<T>(row[j]) - mean;
      squares.Add(distance * distance);
    }
    scale = Exact<T>(1) / Sqrt(squares.Total() / count + Rounded<T>(kEps));
  }
};

template <typename T>
static void ExpectLayerNorm(const LayerShape& s) {
  std::vector<T> a = Reals<T>(s.rows * s.cols, 1), weight = Reals<T>(s.cols, 2), bias = Reals<T>(s.cols, 3);
  for (T& value : a) value += 2;  // a mean to take away
  ForEachSetting([&] {
    std::vector<T> out(a.size(), T(99)), mean(static_cast<size_t>(s.rows)), scale(mean);
    Buffer in = View(a), w = View(weight), b = View(bias), result = View(out), m = View(mean), f = View(scale);
    LayerNorm(in, w, b, result, m, f, kEps);
    for (int64_t row = 0; row < s.rows; row++) {
      const RowMoments<T> plain(&a[row * s.cols], s.cols);
      EXPECT(plain.mean.Covers(mean[row]));
      EXPECT(plain.scale.Covers(scale[row]));
      for (int64_t i = row * s.cols; i < (row + 1) * s.cols; i++) {
        const Bounded<T> normal = (Exact<T>(a[i]) - Exact<T>(mean[row])) * Exact<T>(scale[row]);
        EXPECT((normal * Exact<T>(weight[i % s.cols]) + Exact<T>(bias[i % s.cols])).Covers(out[i]));
      }
    }
  });
}

TEST(layer_norm_equals_the_formulas) {
  for (const LayerShape& shape : kShapes) {
    ExpectLayerNorm<float>(shape);
    ExpectLayerNorm<double>(shape);
  }
}

template <typename T>
static void ExpectLayerNormBackward(const LayerShape& s) {
  std::vector<T> a = Reals<T>(s.rows * s.cols, 4), weight = Reals<T>(s.cols, 5), grad = Reals<T>(s.rows * s.cols, 6),
                 mean = Reals<T>(s.rows, 7), scale = Reals<T>(s.rows, 8);
  ForEachSetting([&] {
    std::vector<T> to_a(a.size(), T(99)), to_weight(weight.size(), T(99)), to_bias(to_weight);
    Buffer in = View(a), w = View(weight), m = View(mean), f = View(scale), g = View(grad), da = View(to_a),
           dw = View(to_weight), db = View(to_bias);
    LayerNormBackward(in, w, m, f, g, da, dw, db);
    std::vector<Sum<T>> weights(weight.size()), biases(weight.size());
    for (int64_t row = 0; row < s.rows; row++) {
      const Bounded<T> centre = Exact<T>(mean[row]), by = Exact<T>(scale[row]);
      const Bounded<T> count = Exact<T>(static_cast<double>(s.cols));
      const auto at = [&](const std::vector<T>& values, int64_t j) { return Exact<T>(values[row * s.cols + j]); };
      const auto normal = [&](int64_t j) { return (at(a, j) - centre) * by; };
      const auto paid = [&](int64_t j) { return at(grad, j) * Exact<T>(weight[j]); };
      Sum<T> sum, both;
      for (int64_t j = 0; j < s.cols; j++) {
        sum.Add(paid(j));
        both.Add(paid(j) * normal(j));
        weights[j].Add(at(grad, j) * normal(j));
        biases[j].Add(at(grad, j));
      }
      for (int64_t j = 0; j < s.cols; j++) {
        const Bounded<T> wanted = by * (paid(j) - sum.Total() / count - normal(j) * (both.Total() / count));
        EXPECT(wanted.Covers(to_a[row * s.cols + j]));
      }
    }
    for (int64_t j = 0; j < s.cols; j++) {
      EXPECT(weights[j].Total().Covers(to_weight[j]));
      EXPECT(biases[j].Total().Covers(to_bias[j]));
    }
  });
}

TEST(layer_norm_backward_equals_the_formulas) {
  for (const LayerShape& shape : kShapes) {
    ExpectLayerNormBackward<float>(shape);
    ExpectLayerNormBackward<double>(shape);
  }
}

TEST(layer_norm_backward_has_the_same_bits_on_any_number_of_threads) {
  const LayerShape s{700, 41};
  std::vector<float> a = Reals<float>(s.rows * s.cols, 9), weight = Reals<float>(s.cols, 10), ones(s.rows, 1.0f),
                     to_a(a.size()), to_weight(weight.size()), to_bias(weight.size());
  Buffer in = View(a), w = View(weight), one = View(ones), da = View(to_a), dw = View(to_weight), db = View(to_bias);
  EXPECT(SameOnAnyThreads([&] {
    LayerNormBackward(in, w, one, one, in, da, dw, db);
    return to_weight;
  }));
}
