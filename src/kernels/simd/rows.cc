// What is done to one row of floats: a row stays in the cache, so that memory is read once.
#include "../row_loops.h"
#include "fold.h"

namespace needle {
namespace {

template <typename T>
struct Rows : Folds<T> {
  using typename Simd<T>::Vector;
  using Simd<T>::kLanes;
  using Math<T>::All, Math<T>::kInfinity;
  using Loops<T>::Load, Loops<T>::Store, Loops<T>::LoadFirst, Loops<T>::StoreFirst;
  using LogSum = typename RowLoops<T>::LogSum;

  static constexpr int64_t kBlock = 16 * kLanes;  // so many terms are added up before they are added to the sum

  /// out[j] = value(j, load) where load(from) are the elements of a row at j.
  template <typename Value>
  static void Fill(T* out, int64_t cols, const Value& value) {
    int64_t j = 0;
    for (; j + kLanes <= cols; j += kLanes) Store(out + j, value([j](const T* from) { return Load(from + j); }));
    const int64_t left = cols - j;
    if (left) StoreFirst(out + j, value([j, left](const T* from) { return LoadFirst(from + j, left); }), left);
  }

  /// The sum of term(load) over a row, in blocks; term(load) where the row ends counts only as far as it goes.
  template <typename Term>
  static T Sum(int64_t cols, const Term& term) {
    Vector sum = {};
    int64_t j = 0;
    while (j + kLanes <= cols) {
      Vector block = {}, other = {};
      const int64_t end = cols - j < kBlock ? cols : j + kBlock;
      for (; j + 2 * kLanes <= end; j += 2 * kLanes) {
        block += term([j](const T* from) { return Load(from + j); });
        other += term([j](const T* from) { return Load(from + j + kLanes); });
      }
      if (j + kLanes <= end) block += term([j](const T* from) { return Load(from + j); }), j += kLanes;
      sum += block + other;
    }
    if (j < cols) {
      const int64_t left = cols - j;
      Vector last = term([j, left](const T* from) { return LoadFirst(from + j, left); });
      for (int64_t i = left; i < kLanes; i++) last[i] = 0;
      sum += last;
    }
    return Folds<T>::template FoldLanes<needle::Sum>(sum);
  }

  static T Largest(const T* row, int64_t cols) { return Folds<T>::template Fold<Max>(row, cols); }
  static bool IsFinite(T a) { return a - a == 0; }
  static T LogOf(T a) { return Math<T>::Log(All(a))[0]; }

  static LogSum LogSumExp(const T* row, int64_t cols) {
    const T largest = Largest(row, cols);
    if (!IsFinite(largest)) return {largest, 0};  // all -inf, or one +inf or NaN, which then is the answer
    const T sum = Sum(cols, [&](auto load) { return Math<T>::Exp(load(row) - largest); });
    return {largest, LogOf(sum)};
  }

  static void Shift(const T* row, T first, T second, T* out, int64_t cols) {
    Fill(out, cols, [&](auto load) { return (load(row) - first) - second; });
  }

  static void ScaledExp(const T* row, T shift, T scale, T* out, int64_t cols) {
    Fill(out, cols, [&](auto load) { return scale * Math<T>::Exp(load(row) - shift); });
  }

  static void LogSoftmaxBackward(const T* y, const T* grad, T* out, int64_t cols) {
    const T sum = Folds<T>::template Fold<needle::Sum>(grad, cols);
    Fill(out, cols, [&](auto load) { return load(grad) - Math<T>::Exp(load(y)) * sum; });
  }

  static void Softmax(const T* row, T* out, int64_t cols) {
    const T largest = Largest(row, cols);
    ScaledExp(row, largest, 1, out, cols);
    const T scale = 1 / Folds<T>::template Fold<needle::Sum>(out, cols);
    Fill(out, cols, [&](auto load) { return load(out) * scale; });
  }

  static void SoftmaxBackward(const T* y, const T* grad, T* out, int64_t cols) {
    const T sum = Sum(cols, [&](auto load) { return load(y) * load(grad); });
    Fill(out, cols, [&](auto load) { return load(y) * (load(grad) - sum); });
  }

  static void LayerNorm(const T* row, const T* weight, const T* bias, T eps, T* out, T* mean, T* scale, int64_t cols) {
    const T count = static_cast<T>(cols), centre = Folds<T>::template Fold<needle::Sum>(row, cols) / count;
    const T squares = Sum(cols, [&](auto load) { return (load(row) - centre) * (load(row) - centre); });
    const T variance = squares / count + eps;
    const T factor = 1 / (sizeof(T) == 4 ? __builtin_sqrtf(static_cast<float>(variance)) : __builtin_sqrt(variance));
    Fill(out, cols, [&](auto load) { return (load(row) - centre) * factor * load(weight) + load(bias); });
    *mean = centre, *scale = factor;
  }

  static void LayerNormBackward(const T* row, const T* weight, T mean, T scale, const T* grad, T* to_row, T* to_weight,
                                T* to_bias, int64_t cols) {
    const auto normal = [&](auto load) { return (load(row) - mean) * scale; };
    const auto paid = [&](auto load) { return load(grad) * load(weight); };
    const T count = static_cast<T>(cols), mean_paid = Sum(cols, paid) / count;
    const T mean_both = Sum(cols, [&](auto load) { return paid(load) * normal(load); }) / count;
    Fill(to_row, cols, [&](auto load) { return scale * (paid(load) - mean_paid - normal(load) * mean_both); });
    Fill(to_weight, cols, [&](auto load) { return load(to_weight) + normal(load) * load(grad); });
    Fill(to_bias, cols, [&](auto load) { return load(to_bias) + load(grad); });
  }
};

template <typename T, typename F = Rows<T>>
constexpr RowLoops<T> kLoops = {&F::LogSumExp, &F::Shift,           &F::ScaledExp, &F::LogSoftmaxBackward,
                                &F::Softmax,   &F::SoftmaxBackward, &F::LayerNorm, &F::LayerNormBackward};

}  // namespace

namespace NEEDLE_ISA {

template <typename T>
const RowLoops<T>& TableOfRows() {
  return kLoops<T>;
}
template const RowLoops<float>& TableOfRows<float>();
template const RowLoops<double>& TableOfRows<double>();

}  // namespace NEEDLE_ISA
}  // namespace needle
