// Reductions of the rows of an array.
#include "reductions.h"

#include <algorithm>

#include "fold_runs.h"

namespace needle {
namespace {

template <typename Op>
void Reduce(const Buffer& a, Buffer& out, int64_t reduce_size) {
  CheckRuns(Op::kName, a, out, a.dtype(), reduce_size, Op::kHasIdentity);
  Visit(a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const T* in = a.as<T>();
    T* to = out.as<T>();
    if (reduce_size > 2 * kFoldPiece) {
      for (int64_t i = 0; i < out.size(); i++) to[i] = FoldLongRun<Op>(in + i * reduce_size, reduce_size);
      return;
    }
    const int64_t grain = kFoldGrain / std::max<int64_t>(1, reduce_size);
    ParallelFor(out.size(), grain, [=, fold = FoldInUse<Op, T>()](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) to[i] = fold(in + i * reduce_size, reduce_size);
    });
  });
}

/// The first position that no other beats; a NaN is beaten by nothing.
template <typename T, typename Beats>
int64_t Winner(const T* run, int64_t length, const Beats& beats) {
  int64_t winner = 0;
  for (int64_t i = 1; i < length && !IsNan(run[winner]); i++) {
    if (beats(run[i], run[winner]) || IsNan(run[i])) winner = i;
  }
  return winner;
}

template <typename Beats>
void ReduceArg(const char* who, const Buffer& a, Buffer& out, int64_t reduce_size, const Beats& beats) {
  CheckRuns(who, a, out, DType::kInt64, reduce_size, false);
  Visit(a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    ParallelFor(out.size(), kFoldGrain / std::max<int64_t>(1, reduce_size), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++)
        out.as<int64_t>()[i] = Winner(a.as<T>() + i * reduce_size, reduce_size, beats);
    });
  });
}

}  // namespace

void ReduceSum(const Buffer& a, Buffer& out, int64_t reduce_size) {
  Reduce<fold::Sum>(a, out, reduce_size);
}

void ReduceProd(const Buffer& a, Buffer& out, int64_t reduce_size) {
  Reduce<fold::Prod>(a, out, reduce_size);
}

void ReduceMax(const Buffer& a, Buffer& out, int64_t reduce_size) {
  Reduce<fold::Max>(a, out, reduce_size);
}

void ReduceMin(const Buffer& a, Buffer& out, int64_t reduce_size) {
  Reduce<fold::Min>(a, out, reduce_size);
}

void ReduceArgmax(const Buffer& a, Buffer& out, int64_t reduce_size) {
  ReduceArg("reduce_argmax", a, out, reduce_size, [](auto x, auto y) { return x > y; });
}

void ReduceArgmin(const Buffer& a, Buffer& out, int64_t reduce_size) {
  ReduceArg("reduce_argmin", a, out, reduce_size, [](auto x, auto y) { return x < y; });
}

}  // namespace needle
