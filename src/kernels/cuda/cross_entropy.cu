// Cross-entropy without a one-hot matrix and without the softmax in memory.
#include <cmath>

#include "../softmax.h"
#include "exponentials.h"
#include "first_problem.h"

namespace needle {
namespace {

using cuda::Exponentials;
using cuda::ForEachRow;
using cuda::RowExponentials;
using cuda::Team;

template <typename T>
struct CrossEntropyRow {
  using Scratch = Exponentials<T>;
  const T* logits;
  const int64_t* labels;
  T *out, *lse;
  int64_t cols;

  template <int kSize>
  __device__ void Do(int64_t row, Scratch* scratch) const {
    const Exponentials<T> all = RowExponentials<kSize>(logits + row * cols, cols, scratch);
    if (Team<kSize>::Rank() > 0) return;
    lse[row] = all.largest + all.LogRest();
    out[row] = (all.largest - logits[row * cols + labels[row]]) + all.LogRest();
  }
};

template <typename T>
struct CrossEntropyBackwardRow {
  using Scratch = T;
  const T* logits;
  const int64_t* labels;
  const T *lse, *out_grad;
  T* out;
  int64_t cols;

  template <int kSize>
  __device__ void Do(int64_t row, Scratch*) const {
    const T grad = out_grad[row], shift = lse[row];
    TEAM_STRIDE(j, cols) {
      const T share = std::exp(logits[row * cols + j] - shift);
      out[row * cols + j] = grad * (j == labels[row] ? share - T(1) : share);
    }
  }
};

__global__ void FindNoColumn(const int64_t* labels, int64_t rows, int64_t cols, long long* problem) {
  GRID_STRIDE(i, rows) {
    if (labels[i] < 0 || labels[i] >= cols) atomicMin(problem, static_cast<long long>(i));
  }
}

void CheckLabels(const char* who, const Buffer& labels, int64_t rows, int64_t cols) {
  if (rows == 0) return;
  cuda::FirstProblem no_column;
  FindNoColumn<<<cuda::BlocksFor(rows), cuda::kThreads>>>(labels.as<int64_t>(), rows, cols, no_column.device());
  CUDA_CHECK(cudaGetLastError());
  const int64_t row = no_column.Find();
  if (row == no_column.kNone) return;
  int64_t label = 0;
  CUDA_CHECK(cudaMemcpy(&label, labels.as<int64_t>() + row, sizeof(label), cudaMemcpyDeviceToHost));
  RefuseLabel(who, label, row, cols);
}

}  // namespace

void CrossEntropy(const Buffer& logits, const Buffer& labels, Buffer& out, Buffer& lse, int64_t cols) {
  const char* who = "cross_entropy";
  const int64_t rows = CheckedRows(who, logits, cols);
  CheckCrossEntropy(who, logits, labels, out, lse, cols);
  CheckLabels(who, labels, rows, cols);
  VisitOnly<FloatType>(who, logits.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    ForEachRow(rows, cols, CrossEntropyRow<T>{logits.as<T>(), labels.as<int64_t>(), out.as<T>(), lse.as<T>(), cols});
  });
}

void CrossEntropyBackward(const Buffer& logits, const Buffer& labels, const Buffer& lse, const Buffer& out_grad,
                          Buffer& out, int64_t cols) {
  const char* who = "cross_entropy_backward";
  const int64_t rows = CheckedRows(who, logits, cols);
  CheckCrossEntropyBackward(who, logits, labels, lse, out_grad, out, cols);
  VisitOnly<FloatType>(who, logits.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    ForEachRow(rows, cols,
               CrossEntropyBackwardRow<T>{logits.as<T>(), labels.as<int64_t>(), lse.as<T>(), out_grad.as<T>(),
                                          out.as<T>(), cols});
  });
}

}  // namespace needle
