// One kernel for everything that is done to rows: a team of threads works on each.
#ifndef NEEDLE_KERNELS_CUDA_FOR_EACH_ROW_H_
#define NEEDLE_KERNELS_CUDA_FOR_EACH_ROW_H_

#include "team.h"

namespace needle {
namespace cuda {

/// `body` is plain data with a Do<kSize>(row, scratch), which the whole team calls; a Scratch is one warp's result.
template <int kSize, typename Body>
__global__ void RowsOnDevice(Body body, int64_t rows) {
  __shared__ typename Body::Scratch scratch[kWarpsInBlock];
  for (int64_t row = Team<kSize>::First(); row < rows; row += Team<kSize>::Step()) {
    body.template Do<kSize>(row, scratch);
  }
}

/// Do(row) for all rows, which are `cols` long.
template <typename Body>
void ForEachRow(int64_t rows, int64_t cols, const Body& body) {
  if (rows == 0) return;
  if (cols > kLongRun) {
    RowsOnDevice<kThreads, Body><<<BlocksFor(rows, 1), kThreads>>>(body, rows);
  } else {
    RowsOnDevice<kWarp, Body><<<BlocksFor(rows, kWarpsInBlock), kThreads>>>(body, rows);
  }
  CUDA_CHECK(cudaGetLastError());
}

/// The columns of one thread of the team.
#define TEAM_STRIDE(j, cols) for (int64_t j = Team<kSize>::Rank(); j < (cols); j += kSize)

struct Plus {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};

}  // namespace cuda
}  // namespace needle

#endif  // NEEDLE_KERNELS_CUDA_FOR_EACH_ROW_H_
