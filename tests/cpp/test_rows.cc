// Fused row kernels against the formulas in double precision.
#include <algorithm>
#include <limits>
#include <utility>

#include "check.h"
#include "kernels/rows.h"

using namespace needle;

constexpr int64_t kRows = 3, kCols = 37;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The row's maximum, and the logarithm of the sum of what is left when it is taken out.
template <typename T>
static std::pair<double, double> PlainLogsumexp(const T* row) {
  double largest = -kInfinity, sum = 0;
  for (int64_t j = 0; j < kCols; j++) largest = std::max(largest, static_cast<double>(row[j]));
  for (int64_t j = 0; j < kCols; j++) sum += std::exp(row[j] - largest);
  return {largest, std::log(sum)};
}

template <typename T>
static bool Close(T got, double wanted) {
  return std::abs(got - wanted) <= 8 * std::numeric_limits<T>::epsilon() * (1 + std::abs(wanted));
}

template <typename T>
static void ExpectRows() {
  std::vector<T> a = SmallNumbers<T>(kRows * kCols, 9), grad = SmallNumbers<T>(kRows * kCols, 10);
  std::vector<T> lse(kRows), row_grad = SmallNumbers<T>(kRows, 11), out(a.size()), y(a.size());
  for (int64_t j = 0; j < kCols; j++) a[j] *= T(1000);  // the first row would overflow unshifted
  Buffer in = View(a), grads = View(grad), sums = View(lse), row_grads = View(row_grad), result = View(out),
         soft = View(y);

  Logsumexp(in, sums, kCols);
  for (int64_t row = 0; row < kRows; row++) {
    const auto [largest, log_rest] = PlainLogsumexp(&a[row * kCols]);
    EXPECT(Close(lse[row], largest + log_rest));
  }

  LogsumexpBackward(in, sums, row_grads, result, kCols);
  for (size_t i = 0; i < a.size(); i++) {
    EXPECT(Close(out[i], row_grad[i / kCols] * std::exp(static_cast<double>(a[i]) - lse[i / kCols])));
  }

  Logsoftmax(in, soft, kCols);
  for (size_t i = 0; i < a.size(); i++) {
    const auto [largest, log_rest] = PlainLogsumexp(&a[i / kCols * kCols]);
    EXPECT(Close(y[i], (a[i] - largest) - log_rest));
  }

  LogsoftmaxBackward(soft, grads, result, kCols);
  for (size_t i = 0; i < a.size(); i++) {
    double sum = 0;
    for (int64_t j = 0; j < kCols; j++) sum += grad[i / kCols * kCols + j];
    EXPECT(Close(out[i], grad[i] - std::exp(static_cast<double>(y[i])) * sum));
  }
}

TEST(rows_equal_the_formulas) {
  ExpectRows<float>();
  ExpectRows<double>();
}

TEST(rows_of_minus_infinity_give_minus_infinity_and_no_gradient) {
  std::vector<float> a(kCols, -std::numeric_limits<float>::infinity()), lse(1), grad = {2}, out(kCols, 5.0f);
  Buffer in = View(a), sum = View(lse), row_grad = View(grad), result = View(out);
  Logsumexp(in, sum, kCols);
  EXPECT(lse[0] == -std::numeric_limits<float>::infinity());
  LogsumexpBackward(in, sum, row_grad, result, kCols);
  EXPECT(out == std::vector<float>(kCols, 0.0f));
}

TEST(rows_refuse_what_is_no_rows_and_no_floats) {
  Buffer a(6, DType::kFloat32), out(2, DType::kFloat32), integers(6, DType::kInt32), integer_out(2, DType::kInt32);
  EXPECT_THROW(std::invalid_argument, Logsumexp(a, out, 4));
  EXPECT_THROW(std::invalid_argument, Logsumexp(a, out, 0));
  EXPECT_THROW(std::invalid_argument, Logsumexp(a, out, -3));
  EXPECT_THROW(TypeError, Logsumexp(integers, integer_out, 3));
}
