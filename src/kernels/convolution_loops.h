// The innermost loops of convolution, made for each instruction set.
//
// Every product here has one factor that is never packed: its element (r, k) is x[rows[r].x + steps[k].x].  For the
// results of a convolution, r is a pixel and k a tap and a channel; for the gradient of its kernel it is the other way
// round.
#ifndef NEEDLE_KERNELS_CONVOLUTION_LOOPS_H_
#define NEEDLE_KERNELS_CONVOLUTION_LOOPS_H_

#include <cstdint>

#include "isa.h"

namespace needle {

/// What becomes of a sum.
template <typename T>
struct Finish {
  bool accumulate;  // what stands in out already is added, ...
  const T* bias;    // ... then this, one number for each column, unless null, ...
  bool relu;        // ... and what is below 0 becomes 0
};

/// Where a row of the product lies in x, and in out; or a step of its sums in x, and in the panel.
struct Place {
  int64_t x, other;
};

/// out[rows[r].other + j] = finish(Σ_k x[rows[r].x + steps[k].x] · panel[steps[k].other + j]) for j < columns.
template <typename T>
using MultiplyGathered = void (*)(const T* x, const Place* rows, int64_t row_count, const Place* steps, int64_t depth,
                                  const T* panel, T* out, int64_t columns, const Finish<T>& finish);

template <typename T>
struct ConvolutionLoops {
  int64_t tile_rows, tile_columns, lanes;
  /// to[k * width + j] = from[k * row_stride + j * column_stride], for j < columns.
  void (*copy)(const T* from, int64_t row_stride, int64_t column_stride, int64_t rows, int64_t columns, T* to,
               int64_t width);
  /// For columns ≤ tile_columns; of the panel, whole vectors of `lanes` are read.
  MultiplyGathered<T> multiply;
  /// For any number of columns, and x[rows[r].x + steps[k].x + j]: depthwise convolution.
  MultiplyGathered<T> multiply_channelwise;
  /// out[j] += Σ_k panel[steps[k].other + j].
  void (*sum_columns)(const T* panel, const Place* steps, int64_t depth, int64_t columns, T* out);
};

NEEDLE_FOR_EACH_ISA(template <typename T> ConvolutionLoops<T> LoopsOfConvolution();)

}  // namespace needle

#endif  // NEEDLE_KERNELS_CONVOLUTION_LOOPS_H_
