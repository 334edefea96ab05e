// Folds of rows and columns of floats, and what is done to one row, as loops over vectors: a table for each instruction
// set.
#ifndef NEEDLE_KERNELS_ROW_LOOPS_H_
#define NEEDLE_KERNELS_ROW_LOOPS_H_

#include <cstdint>

#include "isa.h"

namespace needle {

// The rounding error of a sum grows with the logarithm of its length (Higham 1993, "The accuracy of floating point
// summation", section 3).  The order depends on lengths, on gaps between rows and on the instruction set, never on
// threads.
template <typename T>
struct FoldLoops {
  /// The fold of length >= 1 numbers in a row; a NaN wins every maximum and minimum.
  using Run = T (*)(const T* run, int64_t length);
  /// out[j] = the fold of a[k * row_stride + j] over rows >= 1.  Rows that begin before end are fetched ahead; if it is
  /// a, none.
  using Columns = void (*)(const T* a, int64_t row_stride, int64_t rows, T* out, int64_t cols, const T* end);

  Run sum, max, min;
  Columns sum_columns, max_columns, min_columns;
};

template <typename T>
struct RowLoops {
  /// The row's largest number, and log Σ exp(row - largest); 0 where the largest is infinite or NaN.
  struct LogSum {
    T largest, log_rest;
  };
  LogSum (*logsumexp)(const T* row, int64_t cols);
  /// out = row - first - second.
  void (*shift)(const T* row, T first, T second, T* out, int64_t cols);
  /// out = scale · exp(row - shift).
  void (*scaled_exp)(const T* row, T shift, T scale, T* out, int64_t cols);
  /// out = grad - exp(y) · Σ grad.
  void (*logsoftmax_backward)(const T* y, const T* grad, T* out, int64_t cols);
  /// out = exp(row) / Σ exp(row).
  void (*softmax)(const T* row, T* out, int64_t cols);
  /// out = y · (grad - Σ y · grad).
  void (*softmax_backward)(const T* y, const T* grad, T* out, int64_t cols);
  /// out = (row - mean) / √(variance + eps) · weight + bias; mean and the factor before weight are left, too.
  void (*layer_norm)(const T* row, const T* weight, const T* bias, T eps, T* out, T* mean, T* scale, int64_t cols);
  /// With x the normalised row: its gradient; and x · grad and grad, added to the sums over rows.
  void (*layer_norm_backward)(const T* row, const T* weight, T mean, T scale, const T* grad, T* to_row, T* to_weight,
                              T* to_bias, int64_t cols);
};

NEEDLE_FOR_EACH_ISA(template <typename T> const FoldLoops<T>& TableOfFolds();)
NEEDLE_FOR_EACH_ISA(template <typename T> const RowLoops<T>& TableOfRows();)

}  // namespace needle

#endif  // NEEDLE_KERNELS_ROW_LOOPS_H_
