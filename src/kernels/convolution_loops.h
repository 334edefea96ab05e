// The innermost loops of convolution, made for each instruction set.
//
// Every product here has one factor that is never packed: its element (r, k) is x[rows[r] + depths[k]].  For the results
// of a convolution, r is a pixel and k a tap and a channel; for the gradient of its kernel it is the other way round.
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

/// out[outs[r] + j] = finish(Σ_k x[rows[r] + depths[k]] · panel(k, j)).
template <typename T>
using MultiplyGathered = void (*)(const T* x, const int64_t* rows, int64_t row_count, const int64_t* depths,
                                  int64_t depth, const T* panel, T* out, const int64_t* outs, int64_t columns,
                                  const Finish<T>& finish);

template <typename T>
struct ConvolutionLoops {
  int64_t tile_rows, tile_columns;
  /// Lay a matrix out in panels of tile_columns columns, zeros beyond its edge; panels begin panel_stride apart.
  void (*pack)(const T* from, int64_t row_stride, int64_t column_stride, int64_t rows, int64_t columns, T* panels,
               int64_t panel_stride);
  /// For one panel: columns ≤ tile_columns.
  MultiplyGathered<T> multiply;
  /// For a panel with rows of `columns`, any number of them, and x[rows[r] + depths[k] + j]: depthwise convolution.
  MultiplyGathered<T> multiply_channelwise;
  /// out[j] (+)= Σ_k panel(k, j) for one panel.
  void (*sum_panel)(const T* panel, int64_t depth, int64_t columns, T* out, bool accumulate);
};

NEEDLE_FOR_EACH_ISA(template <typename T> ConvolutionLoops<T> LoopsOfConvolution();)

}  // namespace needle

#endif  // NEEDLE_KERNELS_CONVOLUTION_LOOPS_H_
