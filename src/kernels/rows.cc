#include "rows.h"

#include <limits>

#include "parallel.h"
#include "row_loops.h"
#include "softmax.h"

namespace needle {
namespace {

constexpr int64_t kGrain = 1 << 12;  // elements; an exponential is worth many additions

template <typename T>
const RowLoops<T>& LoopsInUse() {
  return NEEDLE_DISPATCH(TableOfRows<T>)();
}

/// Call body(row) for all rows, on several threads.
template <typename Body>
void ForEachRow(int64_t rows, int64_t cols, const Body& body) {
  ParallelFor(rows, 1 + kGrain / cols, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; row++) body(row);
  });
}

/// What to subtract before exp, so that a row of -inf, whose log-sum-exp is -inf, gets 0.
template <typename T>
T Shift(T lse) {
  return lse == -std::numeric_limits<T>::infinity() ? T(0) : lse;
}

}  // namespace

void Logsumexp(const Buffer& a, Buffer& out, int64_t cols) {
  const char* who = "logsumexp";
  CheckBuffer(who, "out", out, CheckedRows(who, a, cols), a.dtype());
  CheckApart(who, a, out);
  VisitOnly<FloatType>(who, a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    ForEachRow(out.size(), cols, [&, loop = LoopsInUse<T>().logsumexp](int64_t row) {
      const auto [largest, log_rest] = loop(a.as<T>() + row * cols, cols);
      out.as<T>()[row] = largest + log_rest;
    });
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
    ForEachRow(rows, cols, [&, loop = LoopsInUse<T>().scaled_exp](int64_t row) {
      loop(a.as<T>() + row * cols, Shift(lse.as<T>()[row]), out_grad.as<T>()[row], out.as<T>() + row * cols, cols);
    });
  });
}

void Logsoftmax(const Buffer& a, Buffer& out, int64_t cols) {
  const char* who = "logsoftmax";
  const int64_t rows = CheckedRows(who, a, cols);
  CheckBuffer(who, "out", out, a.size(), a.dtype());
  VisitOnly<FloatType>(who, a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    ForEachRow(rows, cols, [&, &loops = LoopsInUse<T>()](int64_t row) {
      const T* in = a.as<T>() + row * cols;
      const auto [largest, log_rest] = loops.logsumexp(in, cols);
      // in two steps: small differences of large numbers stay exact
      loops.shift(in, largest, log_rest, out.as<T>() + row * cols, cols);
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
    ForEachRow(rows, cols, [&, loop = LoopsInUse<T>().logsoftmax_backward](int64_t row) {
      const int64_t first = row * cols;
      loop(y.as<T>() + first, out_grad.as<T>() + first, out.as<T>() + first, cols);
    });
  });
}

void Softmax(const Buffer& a, Buffer& out, int64_t cols) {
  const char* who = "softmax";
  const int64_t rows = CheckedRows(who, a, cols);
  CheckBuffer(who, "out", out, a.size(), a.dtype());
  VisitOnly<FloatType>(who, a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    ForEachRow(rows, cols, [&, loop = LoopsInUse<T>().softmax](int64_t row) {
      loop(a.as<T>() + row * cols, out.as<T>() + row * cols, cols);
    });
  });
}

void SoftmaxBackward(const Buffer& y, const Buffer& out_grad, Buffer& out, int64_t cols) {
  const char* who = "softmax_backward";
  const int64_t rows = CheckedRows(who, y, cols);
  CheckBuffer(who, "out_grad", out_grad, y.size(), y.dtype());
  CheckBuffer(who, "out", out, y.size(), y.dtype());
  VisitOnly<FloatType>(who, y.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    ForEachRow(rows, cols, [&, loop = LoopsInUse<T>().softmax_backward](int64_t row) {
      const int64_t first = row * cols;
      loop(y.as<T>() + first, out_grad.as<T>() + first, out.as<T>() + first, cols);
    });
  });
}

void CrossEntropy(const Buffer& logits, const Buffer& labels, Buffer& out, Buffer& lse, int64_t cols) {
  const char* who = "cross_entropy";
  CheckCrossEntropy(who, logits, labels, out, lse, cols);
  const int64_t* label = labels.as<int64_t>();
  for (int64_t row = 0; row < out.size(); row++) {
    if (label[row] < 0 || label[row] >= cols) RefuseLabel(who, label[row], row, cols);
  }
  VisitOnly<FloatType>(who, logits.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    ForEachRow(out.size(), cols, [&, loop = LoopsInUse<T>().logsumexp](int64_t row) {
      const T* in = logits.as<T>() + row * cols;
      const auto [largest, log_rest] = loop(in, cols);
      out.as<T>()[row] = (largest - in[label[row]]) + log_rest;
      lse.as<T>()[row] = largest + log_rest;
    });
  });
}

void CrossEntropyBackward(const Buffer& logits, const Buffer& labels, const Buffer& lse, const Buffer& out_grad,
                          Buffer& out, int64_t cols) {
  const char* who = "cross_entropy_backward";
  CheckCrossEntropyBackward(who, logits, labels, lse, out_grad, out, cols);
  VisitOnly<FloatType>(who, logits.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    ForEachRow(lse.size(), cols, [&, loop = LoopsInUse<T>().scaled_exp](int64_t row) {
      const T grad = out_grad.as<T>()[row];
      T* to = out.as<T>() + row * cols;
      loop(logits.as<T>() + row * cols, lse.as<T>()[row], grad, to, cols);
      const int64_t label = labels.as<int64_t>()[row];
      if (label >= 0 && label < cols) to[label] -= grad;
    });
  });
}

}  // namespace needle
