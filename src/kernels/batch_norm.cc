#include "batch_norm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "../checks.h"
#include "parallel.h"
#include "rounding.h"

namespace needle {
namespace {

constexpr int64_t kSlab = 1 << 13;   // elements: a slab stays in the first-level cache between its two passes
constexpr int64_t kGrain = 1 << 15;  // elements that are worth a thread

/// An array cut into slabs, in the same way whatever the number of threads.
class Slabs {
 public:
  Slabs(int64_t outer, int64_t channels, int64_t inner)
      : whole_{outer, channels, inner}, step_(std::max<int64_t>(1, kSlab / std::max<int64_t>(1, channels * inner))) {}

  int64_t count() const { return CeilDiv(whole_.outer, step_); }
  int64_t Begin(int64_t i) const { return i * step_ * whole_.channels * whole_.inner; }
  Slab operator[](int64_t i) const {
    return {std::min(step_, whole_.outer - i * step_), whole_.channels, whole_.inner};
  }

  template <typename Body>
  void ForEach(const Body& body) const {
    const int64_t size = step_ * whole_.channels * whole_.inner;
    ParallelFor(count(), 1 + kGrain / std::max<int64_t>(1, size), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) body(i);
    });
  }

 private:
  Slab whole_;
  int64_t step_;
};

/// Mean and sum of squared distances from it, slab after slab (Chan, Golub and LeVeque 1979).
struct Moments {
  double count = 0, mean = 0, squares = 0;

  void Add(double slab_count, double sum, double slab_squares) {
    const double distance = sum / slab_count - mean, total = count + slab_count;
    squares += slab_squares + distance * distance * count * slab_count / total;
    mean += distance * slab_count / total;
    count = total;
  }
};

int64_t CheckedChannels(const char* who, const Buffer& a, const Buffer& weight, int64_t outer, int64_t inner) {
  CheckBuffer(who, "a", a, CheckedSize(who, {outer, weight.size(), inner}), weight.dtype());
  if (a.size() == 0) Refuse(who, "no elements, wanted some in each channel");
  return weight.size();
}

void CheckOut(const char* who, const char* what, const Buffer& out, int64_t size, const Buffer& a,
              std::initializer_list<const Buffer*> inputs) {
  CheckBuffer(who, what, out, size, a.dtype());
  for (const Buffer* input : inputs) CheckApart(who, *input, out);
}

}  // namespace

void BatchNorm(const Buffer& a, const Buffer& weight, const Buffer& bias, const Buffer& running_mean,
               const Buffer& running_var, Buffer& out, Buffer& mean, Buffer& scale, Buffer& mixed_mean,
               Buffer& mixed_var, int64_t outer, int64_t inner, double eps, double momentum) {
  const char* who = "batch_norm";
  const int64_t channels = CheckedChannels(who, a, weight, outer, inner);
  CheckBuffer(who, "bias", bias, channels, a.dtype());
  CheckBuffer(who, "running_mean", running_mean, channels, a.dtype());
  CheckBuffer(who, "running_var", running_var, channels, a.dtype());
  const auto inputs = {&a, &weight, &bias, &running_mean, &running_var};
  CheckOut(who, "out", out, a.size(), a, inputs);
  CheckOut(who, "mean", mean, channels, a, inputs);
  CheckOut(who, "scale", scale, channels, a, inputs);
  CheckOut(who, "mixed_mean", mixed_mean, channels, a, inputs);
  CheckOut(who, "mixed_var", mixed_var, channels, a, inputs);
  VisitOnly<FloatType>(who, a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const BatchNormLoops<T> loops = NEEDLE_DISPATCH(LoopsOfBatchNorm<T>)();
    const Slabs slabs(outer, channels, inner);
    std::vector<T> sums(static_cast<size_t>(2 * slabs.count() * channels)), factor(static_cast<size_t>(channels));
    slabs.ForEach([&](int64_t i) {
      T* sum = sums.data() + 2 * i * channels;
      loops.statistics(a.as<T>() + slabs.Begin(i), slabs[i], sum, sum + channels);
    });
    for (int64_t c = 0; c < channels; c++) {
      Moments moments;
      for (int64_t i = 0; i < slabs.count(); i++) {
        const T* sum = sums.data() + 2 * i * channels + c;
        moments.Add(static_cast<double>(slabs[i].outer * inner), sum[0], sum[channels]);
      }
      const double variance = moments.squares / moments.count;
      mean.as<T>()[c] = static_cast<T>(moments.mean);
      scale.as<T>()[c] = static_cast<T>(1 / std::sqrt(variance + eps));
      factor[static_cast<size_t>(c)] = scale.as<T>()[c] * weight.as<T>()[c];
      const auto mixed = [&](T running, double observed) {
        return static_cast<T>((1 - momentum) * running + momentum * observed);
      };
      mixed_mean.as<T>()[c] = mixed(running_mean.as<T>()[c], moments.mean);
      mixed_var.as<T>()[c] = mixed(running_var.as<T>()[c], variance);
    }
    slabs.ForEach([&](int64_t i) {
      loops.normalize(a.as<T>() + slabs.Begin(i), slabs[i], mean.as<T>(), factor.data(), bias.as<T>(),
                      out.as<T>() + slabs.Begin(i));
    });
  });
}

void BatchNormBackward(const Buffer& a, const Buffer& weight, const Buffer& mean, const Buffer& scale,
                       const Buffer& out_grad, Buffer& to_a, Buffer& to_weight, Buffer& to_bias, int64_t outer,
                       int64_t inner) {
  const char* who = "batch_norm_backward";
  const int64_t channels = CheckedChannels(who, a, weight, outer, inner);
  CheckBuffer(who, "mean", mean, channels, a.dtype());
  CheckBuffer(who, "scale", scale, channels, a.dtype());
  CheckBuffer(who, "out_grad", out_grad, a.size(), a.dtype());
  const auto inputs = {&a, &weight, &mean, &scale, &out_grad};
  CheckOut(who, "to_a", to_a, a.size(), a, inputs);
  CheckOut(who, "to_weight", to_weight, channels, a, inputs);
  CheckOut(who, "to_bias", to_bias, channels, a, inputs);
  VisitOnly<FloatType>(who, a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const BatchNormLoops<T> loops = NEEDLE_DISPATCH(LoopsOfBatchNorm<T>)();
    const Slabs slabs(outer, channels, inner);
    std::vector<T> sums(static_cast<size_t>(2 * slabs.count() * channels)), numbers(static_cast<size_t>(3 * channels));
    T *factor = numbers.data(), *shift = factor + channels, *slope = shift + channels;
    slabs.ForEach([&](int64_t i) {
      T* sum = sums.data() + 2 * i * channels;
      loops.gradient_sums(a.as<T>() + slabs.Begin(i), out_grad.as<T>() + slabs.Begin(i), slabs[i], mean.as<T>(), sum,
                          sum + channels);
    });
    const double count = static_cast<double>(outer * inner);
    for (int64_t c = 0; c < channels; c++) {
      double sum = 0, product = 0;
      for (int64_t i = 0; i < slabs.count(); i++) {
        sum += sums[static_cast<size_t>(2 * i * channels + c)];
        product += sums[static_cast<size_t>((2 * i + 1) * channels + c)];
      }
      const double scaled = scale.as<T>()[c];
      to_bias.as<T>()[c] = static_cast<T>(sum);
      to_weight.as<T>()[c] = static_cast<T>(product * scaled);
      factor[c] = scale.as<T>()[c] * weight.as<T>()[c];
      shift[c] = static_cast<T>(sum / count);
      slope[c] = static_cast<T>(scaled * scaled * product / count);
    }
    slabs.ForEach([&](int64_t i) {
      loops.to_input(a.as<T>() + slabs.Begin(i), out_grad.as<T>() + slabs.Begin(i), slabs[i], mean.as<T>(), factor,
                     shift, slope, to_a.as<T>() + slabs.Begin(i));
    });
  });
}

}  // namespace needle
