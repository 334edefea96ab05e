#include "../rows.h"

#include <cmath>

#include "../softmax.h"
#include "exponentials.h"

namespace needle {
namespace {

using cuda::Exponentials;
using cuda::ForEachRow;
using cuda::Plus;
using cuda::RowExponentials;
using cuda::Team;

// ---- what is done to a row ------------------------------------------------------------------------------------------

template <typename T>
struct LogsumexpRow {
  using Scratch = Exponentials<T>;
  const T* a;
  T* out;
  int64_t cols;

  template <int kSize>
  __device__ void Do(int64_t row, Scratch* scratch) const {
    const Exponentials<T> all = RowExponentials<kSize>(a + row * cols, cols, scratch);
    if (Team<kSize>::Rank() == 0) out[row] = all.largest + all.LogRest();
  }
};

template <typename T>
struct LogsumexpBackwardRow {
  using Scratch = T;
  const T *a, *lse, *out_grad;
  T* out;
  int64_t cols;

  template <int kSize>
  __device__ void Do(int64_t row, Scratch*) const {
    const T value = lse[row], grad = out_grad[row];
    const T shift = value == -INFINITY ? T(0) : value;  // a row of -inf has gradient 0
    TEAM_STRIDE(j, cols) out[row * cols + j] = grad * std::exp(a[row * cols + j] - shift);
  }
};

template <typename T>
struct LogsoftmaxRow {
  using Scratch = Exponentials<T>;
  const T* a;
  T* out;
  int64_t cols;

  template <int kSize>
  __device__ void Do(int64_t row, Scratch* scratch) const {
    const Exponentials<T> all = RowExponentials<kSize>(a + row * cols, cols, scratch);
    const T rest = all.LogRest();  // taken off after the maximum: small differences of large numbers stay exact
    TEAM_STRIDE(j, cols) out[row * cols + j] = (a[row * cols + j] - all.largest) - rest;
  }
};

template <typename T>
struct LogsoftmaxBackwardRow {
  using Scratch = T;
  const T *y, *out_grad;
  T* out;
  int64_t cols;

  template <int kSize>
  __device__ void Do(int64_t row, Scratch* scratch) const {
    T sum = 0;
    TEAM_STRIDE(j, cols) sum += out_grad[row * cols + j];
    sum = Team<kSize>::FoldAll(sum, scratch, Plus());
    TEAM_STRIDE(j, cols) out[row * cols + j] = out_grad[row * cols + j] - std::exp(y[row * cols + j]) * sum;
  }
};

template <typename T>
struct SoftmaxRow {
  using Scratch = Exponentials<T>;
  const T* a;
  T* out;
  int64_t cols;

  template <int kSize>
  __device__ void Do(int64_t row, Scratch* scratch) const {
    const Exponentials<T> all = RowExponentials<kSize>(a + row * cols, cols, scratch);
    const T share = T(1) / all.sum;
    TEAM_STRIDE(j, cols) out[row * cols + j] = std::exp(a[row * cols + j] - all.largest) * share;
  }
};

template <typename T>
struct SoftmaxBackwardRow {
  using Scratch = T;
  const T *y, *out_grad;
  T* out;
  int64_t cols;

  template <int kSize>
  __device__ void Do(int64_t row, Scratch* scratch) const {
    T sum = 0;
    TEAM_STRIDE(j, cols) sum += y[row * cols + j] * out_grad[row * cols + j];
    sum = Team<kSize>::FoldAll(sum, scratch, Plus());
    TEAM_STRIDE(j, cols) out[row * cols + j] = y[row * cols + j] * (out_grad[row * cols + j] - sum);
  }
};

/// Run a body on rows -> rows; a and out may be one buffer, as each thread reads what it will write.
template <template <typename> class Body>
void RowsToRows(const char* who, const Buffer& a, Buffer& out, int64_t cols) {
  const int64_t rows = CheckedRows(who, a, cols);
  CheckBuffer(who, "out", out, a.size(), a.dtype());
  VisitOnly<FloatType>(who, a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    ForEachRow(rows, cols, Body<T>{a.as<T>(), out.as<T>(), cols});
  });
}

template <template <typename> class Body>
void RowsToRows(const char* who, const Buffer& y, const Buffer& out_grad, Buffer& out, int64_t cols) {
  const int64_t rows = CheckedRows(who, y, cols);
  CheckBuffer(who, "out_grad", out_grad, y.size(), y.dtype());
  CheckBuffer(who, "out", out, y.size(), y.dtype());
  VisitOnly<FloatType>(who, y.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    ForEachRow(rows, cols, Body<T>{y.as<T>(), out_grad.as<T>(), out.as<T>(), cols});
  });
}

}  // namespace

// ---- the functions that Python calls --------------------------------------------------------------------------------

void Logsumexp(const Buffer& a, Buffer& out, int64_t cols) {
  const char* who = "logsumexp";
  CheckBuffer(who, "out", out, CheckedRows(who, a, cols), a.dtype());
  CheckApart(who, a, out);
  VisitOnly<FloatType>(who, a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    ForEachRow(out.size(), cols, LogsumexpRow<T>{a.as<T>(), out.as<T>(), cols});
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
    ForEachRow(rows, cols, LogsumexpBackwardRow<T>{a.as<T>(), lse.as<T>(), out_grad.as<T>(), out.as<T>(), cols});
  });
}

void Logsoftmax(const Buffer& a, Buffer& out, int64_t cols) {
  RowsToRows<LogsoftmaxRow>("logsoftmax", a, out, cols);
}

void LogsoftmaxBackward(const Buffer& y, const Buffer& out_grad, Buffer& out, int64_t cols) {
  RowsToRows<LogsoftmaxBackwardRow>("logsoftmax_backward", y, out_grad, out, cols);
}

void Softmax(const Buffer& a, Buffer& out, int64_t cols) {
  RowsToRows<SoftmaxRow>("softmax", a, out, cols);
}

void SoftmaxBackward(const Buffer& y, const Buffer& out_grad, Buffer& out, int64_t cols) {
  RowsToRows<SoftmaxBackwardRow>("softmax_backward", y, out_grad, out, cols);
}

}  // namespace needle
