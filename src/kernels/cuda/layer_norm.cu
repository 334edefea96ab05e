#include "../layer_norm.h"

#include <cmath>

#include "for_each_row.h"

namespace needle {
namespace {

using cuda::ForEachRow;
using cuda::kThreads;
using cuda::kWarp;
using cuda::Plus;
using cuda::Team;

// ---- mean and variance in one pass ----------------------------------------------------------------------------------

/// How many numbers, their mean, and the sum of their squared distances from it.
template <typename T>
struct Moments {
  T count, mean, squares;
};

/// The moments of both (Chan, Golub and LeVeque 1979, "Updating formulae and a pairwise algorithm for computing sample
/// variances", equation 2.1): no difference of large sums, so that a large mean does no harm.
struct MergeMoments {
  template <typename T>
  __device__ Moments<T> operator()(Moments<T> a, Moments<T> b) const {
    const T count = a.count + b.count;
    if (count == 0) return a;
    const T apart = b.mean - a.mean;
    // so written, (a, b) and (b, a) have the same bits
    const T mean = (a.count * a.mean + b.count * b.mean) / count;
    return {count, mean, a.squares + b.squares + apart * apart * (a.count * b.count / count)};
  }
};

template <int kSize, typename T>
__device__ Moments<T> RowMoments(const T* row, int64_t cols, Moments<T>* scratch) {
  Moments<T> mine{0, 0, 0};
  TEAM_STRIDE(j, cols) {  // one number more (Welford 1962)
    const T apart = row[j] - mine.mean;
    mine.count += 1;
    mine.mean += apart / mine.count;
    mine.squares += apart * (row[j] - mine.mean);
  }
  return Team<kSize>::FoldAll(mine, scratch, MergeMoments());
}

// ---- what is done to a row ------------------------------------------------------------------------------------------

template <typename T>
struct LayerNormRow {
  using Scratch = Moments<T>;
  const T *a, *weight, *bias;
  T *out, *mean, *scale;
  int64_t cols;
  T eps;

  template <int kSize>
  __device__ void Do(int64_t row, Scratch* scratch) const {
    const T* in = a + row * cols;
    const Moments<T> moments = RowMoments<kSize>(in, cols, scratch);
    const T factor = T(1) / std::sqrt(moments.squares / cols + eps);
    TEAM_STRIDE(j, cols) out[row * cols + j] = (in[j] - moments.mean) * factor * weight[j] + bias[j];
    if (Team<kSize>::Rank() == 0) mean[row] = moments.mean, scale[row] = factor;
  }
};

template <typename T>
struct Pair {
  T first, second;
};

struct PlusPair {
  template <typename T>
  __device__ Pair<T> operator()(Pair<T> a, Pair<T> b) const {
    return {a.first + b.first, a.second + b.second};
  }
};

/// With g = out_grad · weight and x the normalised row: to_a = scale · (g - mean(g) - x · mean(g · x)).
template <typename T>
struct LayerNormBackwardRow {
  using Scratch = Pair<T>;
  const T *a, *weight, *mean, *scale, *out_grad;
  T* to_a;
  int64_t cols;

  template <int kSize>
  __device__ void Do(int64_t row, Scratch* scratch) const {
    const T *in = a + row * cols, *grad = out_grad + row * cols;
    const T centre = mean[row], factor = scale[row];
    Pair<T> sums{0, 0};
    TEAM_STRIDE(j, cols) {
      const T paid = grad[j] * weight[j];
      sums.first += paid;
      sums.second += paid * (in[j] - centre) * factor;
    }
    sums = Team<kSize>::FoldAll(sums, scratch, PlusPair());
    TEAM_STRIDE(j, cols) {
      const T normal = (in[j] - centre) * factor;
      to_a[row * cols + j] = factor * (grad[j] * weight[j] - (sums.first + normal * sums.second) / cols);
    }
  }
};

// ---- sums over the rows ---------------------------------------------------------------------------------------------

constexpr int kLines = kThreads / kWarp;

/// A block to 32 columns.  A warp reads 32 neighbours of one row; the block's eight warps share the rows.
template <typename T>
__global__ void ParameterGradients(const T* a, const T* mean, const T* scale, const T* out_grad, T* to_weight,
                                   T* to_bias, int64_t rows, int64_t cols) {
  __shared__ Pair<T> lines[kLines][kWarp];
  const int lane = threadIdx.x % kWarp, line = threadIdx.x / kWarp;
  for (int64_t first = blockIdx.x * int64_t{kWarp}; first < cols; first += gridDim.x * int64_t{kWarp}) {
    const int64_t j = first + lane;
    Pair<T> sums{0, 0};
    for (int64_t row = line; row < rows && j < cols; row += kLines) {
      const T grad = out_grad[row * cols + j];
      sums.first += grad * (a[row * cols + j] - mean[row]) * scale[row];
      sums.second += grad;
    }
    lines[line][lane] = sums;
    __syncthreads();
    if (line == 0 && j < cols) {
      for (int other = 1; other < kLines; other++) sums = PlusPair()(sums, lines[other][lane]);
      to_weight[j] = sums.first;
      to_bias[j] = sums.second;
    }
    __syncthreads();  // the next columns' sums go to the same place
  }
}

template <typename T>
void LaunchParameterGradients(const Buffer& a, const Buffer& mean, const Buffer& scale, const Buffer& out_grad,
                              Buffer& to_weight, Buffer& to_bias) {
  ParameterGradients<T><<<cuda::BlocksFor(to_weight.size(), kWarp), kThreads>>>(
      a.as<T>(), mean.as<T>(), scale.as<T>(), out_grad.as<T>(), to_weight.as<T>(), to_bias.as<T>(), mean.size(),
      to_weight.size());
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace

// ---- the functions that Python calls --------------------------------------------------------------------------------

void LayerNorm(const Buffer& a, const Buffer& weight, const Buffer& bias, Buffer& out, Buffer& mean, Buffer& scale,
               double eps) {
  const char* who = "layer_norm";
  const int64_t cols = weight.size(), rows = CheckedRows(who, a, cols);
  CheckLayerNorm(who, a, weight, bias, out, mean, scale);
  VisitOnly<FloatType>(who, a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    ForEachRow(rows, cols,
               LayerNormRow<T>{a.as<T>(), weight.as<T>(), bias.as<T>(), out.as<T>(), mean.as<T>(), scale.as<T>(), cols,
                               static_cast<T>(eps)});
  });
}

void LayerNormBackward(const Buffer& a, const Buffer& weight, const Buffer& mean, const Buffer& scale,
                       const Buffer& out_grad, Buffer& to_a, Buffer& to_weight, Buffer& to_bias) {
  const char* who = "layer_norm_backward";
  const int64_t cols = weight.size(), rows = CheckedRows(who, a, cols);
  CheckLayerNormBackward(who, a, weight, mean, scale, out_grad, to_a, to_weight, to_bias);
  VisitOnly<FloatType>(who, a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    ForEachRow(rows, cols,
               LayerNormBackwardRow<T>{a.as<T>(), weight.as<T>(), mean.as<T>(), scale.as<T>(), out_grad.as<T>(),
                                       to_a.as<T>(), cols});
    LaunchParameterGradients<T>(a, mean, scale, out_grad, to_weight, to_bias);
  });
}

}  // namespace needle
