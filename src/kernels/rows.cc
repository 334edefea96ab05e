#include "rows.h"

#include <cmath>
#include <limits>

#include "arithmetic.h"
#include "fold.h"
#include "parallel.h"

namespace needle {
namespace {

constexpr int64_t kGrain = 1 << 12;  // elements; an exponential is worth many additions

/// Call body(row) for all rows, on several threads.
template <typename Body>
void ForEachRow(int64_t rows, int64_t cols, const Body& body) {
  ParallelFor(rows, 1 + kGrain / cols, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row++) body(row);
  });
}

/// log(sum(exp(row))) in its two parts: the row's maximum, and the logarithm of what is then left.
template <typename T>
struct ShiftedLogsumexp {
  ShiftedLogsumexp(const T* row, int64_t cols)
      : largest(FoldRun(row, cols, row[0], [](T x, T y) { return Maximum(x, y); })) {
    if (!std::isfinite(largest)) return;  // all -inf, or one +inf or NaN, which then is the answer
    double sum = 0;
    for (int64_t j = 0; j < cols; j++) sum += std::exp(row[j] - largest);
    log_rest = static_cast<T>(std::log(sum));
  }

  T Value() const { return largest + log_rest; }

  T largest;
  T log_rest = 0;
};

}  // namespace

void Logsumexp(const Buffer& a, Buffer& out, int64_t cols) {
  const char* who = "logsumexp";
  CheckBuffer(who, "out", out, CheckedRows(who, a, cols), a.dtype());
  CheckApart(who, a, out);
  VisitOnly<FloatType>(who, a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    ForEachRow(out.size(), cols,
               [&](int64_t row) { out.as<T>()[row] = ShiftedLogsumexp<T>(a.as<T>() + row * cols, cols).Value(); });
  });
}

void LogsumexpBackward(const Buffer& a, const Buffer& lse, const Buffer& out_grad, Buffer& out, int64_t cols) {
  const char* who = "logsumexp_backward";
  const int64_t rows = CheckedRows(who, a, cols);
  CheckBuffer(who, "lse", lse, rows, a.dtype());
  CheckBuffer(who, "out_grad", out_grad, rows, a.dtype());
  CheckBuffer(who, "out", out, a.size(), a.dtype());
  VisitOnly<FloatType>(who, a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    ForEachRow(rows, cols, [&](int64_t row) {
      const T* in = a.as<T>() + row * cols;
      const T grad = out_grad.as<T>()[row], value = lse.as<T>()[row];
      const T shift = value == -std::numeric_limits<T>::infinity() ? T(0) : value;  // a row of -inf has gradient 0
      for (int64_t j = 0; j < cols; j++) out.as<T>()[row * cols + j] = grad * std::exp(in[j] - shift);
    });
  });
}

void Logsoftmax(const Buffer& a, Buffer& out, int64_t cols) {
  const char* who = "logsoftmax";
  const int64_t rows = CheckedRows(who, a, cols);
  CheckBuffer(who, "out", out, a.size(), a.dtype());
  VisitOnly<FloatType>(who, a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    ForEachRow(rows, cols, [&](int64_t row) {
      const T* in = a.as<T>() + row * cols;
      const ShiftedLogsumexp<T> shift(in, cols);  // in two steps: small differences of large numbers stay exact
      for (int64_t j = 0; j < cols; j++) out.as<T>()[row * cols + j] = (in[j] - shift.largest) - shift.log_rest;
    });
  });
}

void LogsoftmaxBackward(const Buffer& y, const Buffer& out_grad, Buffer& out, int64_t cols) {
  const char* who = "logsoftmax_backward";
  const int64_t rows = CheckedRows(who, y, cols);
  CheckBuffer(who, "out_grad", out_grad, y.size(), y.dtype());
  CheckBuffer(who, "out", out, y.size(), y.dtype());
  VisitOnly<FloatType>(who, y.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    ForEachRow(rows, cols, [&](int64_t row) {
      const T *value = y.as<T>() + row * cols, *grad = out_grad.as<T>() + row * cols;
      const T sum = FoldRun(grad, cols, T(0), [](T x, T y) { return x + y; });
      for (int64_t j = 0; j < cols; j++) out.as<T>()[row * cols + j] = grad[j] - std::exp(value[j]) * sum;
    });
  });
}

}  // namespace needle
