// The loops of batch norm.  Where channels lie side by side (inner = 1) a vector holds several of them, else several
// elements of one.
#include "../batch_norm.h"

#include "vector.h"

namespace needle {
namespace {

template <typename T>
struct Loops : Simd<T> {
  using typename Simd<T>::Vector;
  using Simd<T>::kLanes, Simd<T>::Load, Simd<T>::Store;

  // A formula is a function of two functions, from arrays to what stands in them: `at` for arrays of the slab's shape,
  // `of` for those with a number for each channel.

  /// out = formula, element by element.
  template <typename Formula>
  static void Map(const Slab& slab, T* out, const Formula& formula) {
    if (slab.inner == 1) {
      for (int64_t o = 0; o < slab.outer; o++) MapRun(o * slab.channels, slab.channels, true, 0, out, formula);
    } else {
      for (int64_t run = 0; run < slab.outer * slab.channels; run++) {
        MapRun(run * slab.inner, slab.inner, false, run % slab.channels, out, formula);
      }
    }
  }

  template <typename Formula>
  static void MapRun(int64_t begin, int64_t length, bool channels, int64_t channel, T* out, const Formula& formula) {
    int64_t i = 0;
    for (; i + kLanes <= length; i += kLanes) {
      Store(out + begin + i, formula([&](const T* p) { return Load(p + begin + i); },
                                     [&](const T* p) { return channels ? Load(p + i) : p[channel] - Vector{}; }));
    }
    for (; i < length; i++) {
      out[begin + i] =
          formula([&](const T* p) { return p[begin + i]; }, [&](const T* p) { return channels ? p[i] : p[channel]; });
    }
  }

  /// out[channel] = Σ formula
  template <typename Formula>
  static void Fold(const Slab& slab, T* out, const Formula& formula) {
    slab.inner == 1 ? FoldColumns(slab, out, formula) : FoldRuns(slab, out, formula);
  }

  template <typename Formula>
  static void FoldColumns(const Slab& slab, T* out, const Formula& formula) {
    constexpr int64_t kChains = 4;  // sums, so that an addition need not wait for the one before
    int64_t c = 0;
    for (; c + kLanes <= slab.channels; c += kLanes) {
      const auto of = [&](const T* p) { return Load(p + c); };
      Vector sum[kChains] = {};
      for (int64_t o = 0; o < slab.outer; o++) {
        sum[o % kChains] += formula([&](const T* p) { return Load(p + o * slab.channels + c); }, of);
      }
      Store(out + c, (sum[0] + sum[1]) + (sum[2] + sum[3]));
    }
    for (; c < slab.channels; c++) {
      T sum = 0;
      for (int64_t o = 0; o < slab.outer; o++) {
        sum += formula([&](const T* p) { return p[o * slab.channels + c]; }, [&](const T* p) { return p[c]; });
      }
      out[c] = sum;
    }
  }

  template <typename Formula>
  static void FoldRuns(const Slab& slab, T* out, const Formula& formula) {
    for (int64_t c = 0; c < slab.channels; c++) {
      Vector sum = {};
      T rest = 0;
      for (int64_t o = 0; o < slab.outer; o++) {
        const int64_t begin = (o * slab.channels + c) * slab.inner, end = begin + slab.inner;
        int64_t i = begin;
        for (; i + kLanes <= end; i += kLanes) {
          sum += formula([&](const T* p) { return Load(p + i); }, [&](const T* p) { return p[c] - Vector{}; });
        }
        for (; i < end; i++) rest += formula([&](const T* p) { return p[i]; }, [&](const T* p) { return p[c]; });
      }
      for (int64_t lane = 0; lane < kLanes; lane++) rest += sum[lane];
      out[c] = rest;
    }
  }

  static void Statistics(const T* a, const Slab& slab, T* sum, T* squares) {
    Fold(slab, sum, [=](auto at, auto) { return at(a); });
    const T share = T(1) / static_cast<T>(slab.outer * slab.inner);
    Fold(slab, squares, [=](auto at, auto of) {
      const auto distance = at(a) - of(sum) * share;
      return distance * distance;
    });
  }

  static void Normalize(const T* a, const Slab& slab, const T* mean, const T* factor, const T* bias, T* out) {
    Map(slab, out, [=](auto at, auto of) { return (at(a) - of(mean)) * of(factor) + of(bias); });
  }

  static void GradientSums(const T* a, const T* grad, const Slab& slab, const T* mean, T* sum, T* product) {
    Fold(slab, sum, [=](auto at, auto) { return at(grad); });
    Fold(slab, product, [=](auto at, auto of) { return at(grad) * (at(a) - of(mean)); });
  }

  static void ToInput(const T* a, const T* grad, const Slab& slab, const T* mean, const T* factor, const T* shift,
                      const T* slope, T* out) {
    Map(slab, out,
        [=](auto at, auto of) { return of(factor) * (at(grad) - of(shift) - (at(a) - of(mean)) * of(slope)); });
  }
};

}  // namespace

namespace NEEDLE_ISA {

template <typename T>
BatchNormLoops<T> LoopsOfBatchNorm() {
  return {&Loops<T>::Statistics, &Loops<T>::Normalize, &Loops<T>::GradientSums, &Loops<T>::ToInput};
}
template BatchNormLoops<float> LoopsOfBatchNorm<float>();
template BatchNormLoops<double> LoopsOfBatchNorm<double>();

}  // namespace NEEDLE_ISA
}  // namespace needle
