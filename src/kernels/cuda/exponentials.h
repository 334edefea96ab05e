// Σ exp(a) of a row without overflow, in one pass over the row.
#ifndef NEEDLE_KERNELS_CUDA_EXPONENTIALS_H_
#define NEEDLE_KERNELS_CUDA_EXPONENTIALS_H_

#include <cmath>

#include "../arithmetic.h"
#include "for_each_row.h"

namespace needle {
namespace cuda {

/// Σ exp(a) = exp(largest) · sum, of the elements met so far.
template <typename T>
struct Exponentials {
  T largest;
  T sum;

  /// log Σ exp(a) - largest; 0 for a row of nothing but -inf, or with inf or NaN: then `largest` is the answer.
  __device__ T LogRest() const { return std::isfinite(largest) ? std::log(sum) : T(0); }
};

/// The exponentials of both.  Whose maximum is the smaller is scaled, so that nobody needs the row's maximum beforehand
/// (Milakov and Gimelshein 2018, "Online normalizer calculation for softmax", algorithm 3).
struct MergeExponentials {
  template <typename T>
  __device__ Exponentials<T> operator()(Exponentials<T> a, Exponentials<T> b) const {
    const T largest = Maximum(a.largest, b.largest);
    const T smaller = Minimum(a.largest, b.largest);
    if (!std::isfinite(largest)) return {largest, T(0)};  // and no inf - inf, which were a NaN
    const T scale = std::exp(smaller - largest);
    return {largest, a.largest == largest ? a.sum + b.sum * scale : a.sum * scale + b.sum};
  }
};

/// Those of a row, in every thread of its team.
template <int kSize, typename T>
__device__ Exponentials<T> RowExponentials(const T* row, int64_t cols, Exponentials<T>* scratch) {
  const MergeExponentials merge;
  Exponentials<T> mine{-INFINITY, 0};
  TEAM_STRIDE(j, cols) mine = merge(mine, Exponentials<T>{row[j], 1});
  return Team<kSize>::FoldAll(mine, scratch, merge);
}

}  // namespace cuda
}  // namespace needle

#endif  // NEEDLE_KERNELS_CUDA_EXPONENTIALS_H_
