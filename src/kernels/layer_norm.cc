#include "layer_norm.h"

#include <algorithm>

#include "parallel.h"
#include "rounding.h"
#include "row_loops.h"

namespace needle {
namespace {

constexpr int64_t kGrain = 1 << 13;  // elements
constexpr int64_t kRowsAdded = 32;   // rows whose gradients are added up one after the other; the sums then in a tree

template <typename T>
const RowLoops<T>& LoopsInUse() {
  return NEEDLE_DISPATCH(TableOfRows<T>)();
}

}  // namespace

void LayerNorm(const Buffer& a, const Buffer& weight, const Buffer& bias, Buffer& out, Buffer& mean, Buffer& scale,
               double eps) {
  CheckLayerNorm("layer_norm", a, weight, bias, out, mean, scale);
  VisitOnly<FloatType>("layer_norm", a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const int64_t cols = weight.size();
    ParallelFor(mean.size(), 1 + kGrain / cols, [&, loop = LoopsInUse<T>().layer_norm](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; row++) {
        loop(a.as<T>() + row * cols, weight.as<T>(), bias.as<T>(), static_cast<T>(eps), out.as<T>() + row * cols,
             mean.as<T>() + row, scale.as<T>() + row, cols);
      }
    });
  });
}

void LayerNormBackward(const Buffer& a, const Buffer& weight, const Buffer& mean, const Buffer& scale,
                       const Buffer& out_grad, Buffer& to_a, Buffer& to_weight, Buffer& to_bias) {
  CheckLayerNormBackward("layer_norm_backward", a, weight, mean, scale, out_grad, to_a, to_weight, to_bias);
  VisitOnly<FloatType>("layer_norm_backward", a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const int64_t cols = weight.size(), rows = mean.size(), pieces = CeilDiv(rows, kRowsAdded);
    Buffer sums(2 * pieces * cols, a.dtype());  // of weight's gradients, then of bias's: a row a piece
    T *weights = sums.as<T>(), *biases = weights + pieces * cols;
    std::fill(weights, biases + pieces * cols, T(0));
    ParallelFor(pieces, 1 + kGrain / (cols * kRowsAdded), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin * kRowsAdded; row < std::min(rows, end * kRowsAdded); row++) {
        const int64_t first = row * cols, piece = row / kRowsAdded * cols;
        LoopsInUse<T>().layer_norm_backward(a.as<T>() + first, weight.as<T>(), mean.as<T>()[row], scale.as<T>()[row],
                                            out_grad.as<T>() + first, to_a.as<T>() + first, weights + piece,
                                            biases + piece, cols);
      }
    });
    if (pieces == 0) {
      std::fill_n(to_weight.as<T>(), cols, T(0));
      std::fill_n(to_bias.as<T>(), cols, T(0));
      return;
    }
    const auto sum_columns = NEEDLE_DISPATCH(TableOfFolds<T>)().sum_columns;
    sum_columns(weights, cols, pieces, to_weight.as<T>(), cols, weights);
    sum_columns(biases, cols, pieces, to_bias.as<T>(), cols, biases);
  });
}

}  // namespace needle
