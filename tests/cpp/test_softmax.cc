// Softmax and cross-entropy of rows, and their gradients, against the formulas, with the bound of what rounding may do.
#include "bounded.h"
#include "check.h"
#include "kernels/softmax.h"

using namespace needle;

struct RowsOf {
  int64_t rows, cols;
};

// none, one, less than a vector, vectors and a rest, several blocks of a sum, enough for three threads
static const std::vector<RowsOf> kShapes = {{0, 3}, {1, 1}, {2, 3}, {3, 16}, {5, 37}, {2, 1300}, {700, 41}};

/// Rows whose largest number stands at the end, so far above the others of some that an exponential would overflow.
template <typename T>
static std::vector<T> Logits(const RowsOf& s) {
  std::vector<T> a = Reals<T>(s.rows * s.cols, 1);
  for (int64_t row = 0; row < s.rows; row++) a[(row + 1) * s.cols - 1] += static_cast<T>(row % 3 * 800);
  return a;
}

template <typename T>
static std::vector<Bounded<T>> RowOf(const std::vector<T>& values, const RowsOf& s, int64_t row) {
  std::vector<Bounded<T>> numbers;
  for (int64_t j = 0; j < s.cols; j++) numbers.push_back(Exact<T>(values[row * s.cols + j]));
  return numbers;
}

/// A row's largest number, the exponentials of what is left of the others, and their sum.
template <typename T>
struct Exponentials {
  Bounded<T> largest;
  std::vector<Bounded<T>> values;
  Sum<T> sum;

  explicit Exponentials(const std::vector<Bounded<T>>& row) : largest(row[0]), values(row) {
    for (const Bounded<T>& number : row) largest.value = std::max(largest.value, number.value);
    for (Bounded<T>& value : values) sum.Add(value = Exp(value - largest));
  }
};

template <typename T>
static void ExpectSoftmax(const RowsOf& s) {
  std::vector<T> a = Logits<T>(s), grad = Reals<T>(s.rows * s.cols, 2);
  ForEachSetting([&] {
    std::vector<T> y(a.size(), T(99)), to_a(y);
    Buffer in = View(a), out = View(y), out_grad = View(grad), in_grad = View(to_a);
    Softmax(in, out, s.cols);
    SoftmaxBackward(out, out_grad, in_grad, s.cols);
    for (int64_t row = 0; row < s.rows; row++) {
      const Exponentials<T> plain(RowOf(a, s, row));
      const std::vector<Bounded<T>> given = RowOf(y, s, row), grads = RowOf(grad, s, row);
      Sum<T> both;
      for (int64_t j = 0; j < s.cols; j++) both.Add(given[j] * grads[j]);
      for (int64_t j = 0; j < s.cols; j++) {
        EXPECT((plain.values[j] * (Exact<T>(1) / plain.sum.Total())).Covers(y[row * s.cols + j]));
        EXPECT((given[j] * (grads[j] - both.Total())).Covers(to_a[row * s.cols + j]));
      }
    }
  });
}

TEST(softmax_and_its_gradient_equal_the_formulas) {
  for (const RowsOf& shape : kShapes) {
    ExpectSoftmax<float>(shape);
    ExpectSoftmax<double>(shape);
  }
}

template <typename T>
static void ExpectCrossEntropy(const RowsOf& s) {
  std::vector<T> logits = Logits<T>(s), grad = Reals<T>(s.rows, 3);
  std::vector<int64_t> label;
  for (int64_t row = 0; row < s.rows; row++) label.push_back(row * 7 % s.cols);
  ForEachSetting([&] {
    std::vector<T> loss(grad.size(), T(99)), lse(loss), to_logits(logits.size(), T(99));
    Buffer in = View(logits), labels = View(label), out = View(loss), sums = View(lse), out_grad = View(grad),
           in_grad = View(to_logits);
    CrossEntropy(in, labels, out, sums, s.cols);
    CrossEntropyBackward(in, labels, sums, out_grad, in_grad, s.cols);
    for (int64_t row = 0; row < s.rows; row++) {
      const std::vector<Bounded<T>> numbers = RowOf(logits, s, row);
      const Exponentials<T> plain(numbers);
      Sum<T> wanted;  // in any order
      for (const Bounded<T>& term : {plain.largest, Log(plain.sum.Total())}) wanted.Add(term);
      EXPECT(wanted.Total().Covers(lse[row]));
      wanted.Add(Exact<T>(-numbers[label[row]].value));
      EXPECT(wanted.Total().Covers(loss[row]));
      for (int64_t j = 0; j < s.cols; j++) {
        const Bounded<T> share = Exp(numbers[j] - Exact<T>(lse[row])), hit = Exact<T>(j == label[row]);
        EXPECT((Exact<T>(grad[row]) * (share - hit)).Covers(to_logits[row * s.cols + j]));
      }
    }
  });
}

TEST(cross_entropy_and_its_gradient_equal_the_formulas) {
  for (const RowsOf& shape : kShapes) {
    ExpectCrossEntropy<float>(shape);
    ExpectCrossEntropy<double>(shape);
  }
}

TEST(softmax_has_the_same_bits_on_any_number_of_threads) {
  const RowsOf s{700, 41};
  std::vector<float> a = Reals<float>(s.rows * s.cols, 4), y(a.size());
  Buffer in = View(a), out = View(y);
  EXPECT(SameOnAnyThreads([&] {
    Softmax(in, out, s.cols);
    return y;
  }));
}
