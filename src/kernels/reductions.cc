#include "reductions.h"

#include <algorithm>
#include <vector>

#include "arithmetic.h"
#include "fold.h"
#include "parallel.h"

namespace needle {
namespace {

constexpr int64_t kGrain = 1 << 15;  // elements
constexpr int64_t kPiece = 1 << 16;  // a longer run is cut, so that threads can share it

// what is folded; an identity is where it starts, and the result of an empty run
struct Sum {
  static constexpr const char* kName = "reduce_sum";
  static constexpr bool kHasIdentity = true;
  static constexpr int kIdentity = 0;
  template <typename T>
  static T Apply(T a, T b) {
    return Add(a, b);
  }
};

struct Prod {
  static constexpr const char* kName = "reduce_prod";
  static constexpr bool kHasIdentity = true;
  static constexpr int kIdentity = 1;
  template <typename T>
  static T Apply(T a, T b) {
    return Multiply(a, b);
  }
};

struct Max {
  static constexpr const char* kName = "reduce_max";
  static constexpr bool kHasIdentity = false;
  template <typename T>
  static T Apply(T a, T b) {
    return Maximum(a, b);
  }
};

struct Min {
  static constexpr const char* kName = "reduce_min";
  static constexpr bool kHasIdentity = false;
  template <typename T>
  static T Apply(T a, T b) {
    return Minimum(a, b);
  }
};

template <typename Op, typename T>
T Fold(const T* run, int64_t length) {
  T first;
  if constexpr (Op::kHasIdentity) {
    first = T(Op::kIdentity);
  } else {
    first = run[0];  // counted twice, which no maximum minds
  }
  return FoldRun(run, length, first, [](T x, T y) { return Op::Apply(x, y); });
}

/// One long run: its pieces on several threads, then the pieces' results.
template <typename Op, typename T>
T FoldLongRun(const T* run, int64_t length) {
  const int64_t pieces = (length + kPiece - 1) / kPiece;
  std::vector<T> folded(static_cast<size_t>(pieces));
  ParallelFor(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      const int64_t here = std::min(kPiece, length - i * kPiece);
      folded[static_cast<size_t>(i)] = Fold<Op>(run + i * kPiece, here);
    }
  });
  return Fold<Op>(folded.data(), pieces);
}

template <typename Op>
void Reduce(const Buffer& a, Buffer& out, int64_t reduce_size) {
  CheckRuns(Op::kName, a, out, a.dtype(), reduce_size, Op::kHasIdentity);
  Visit(a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const T* in = a.as<T>();
    T* to = out.as<T>();
    if (reduce_size > 2 * kPiece) {
      for (int64_t i = 0; i < out.size(); i++) to[i] = FoldLongRun<Op>(in + i * reduce_size, reduce_size);
      return;
    }
    ParallelFor(out.size(), kGrain / std::max<int64_t>(1, reduce_size), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        to[i] = Fold<Op>(in + i * reduce_size, reduce_size);
      }
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
    ParallelFor(out.size(), kGrain / std::max<int64_t>(1, reduce_size), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++)
        out.as<int64_t>()[i] = Winner(a.as<T>() + i * reduce_size, reduce_size, beats);
    });
  });
}

}  // namespace

void ReduceSum(const Buffer& a, Buffer& out, int64_t reduce_size) {
  Reduce<Sum>(a, out, reduce_size);
}

void ReduceProd(const Buffer& a, Buffer& out, int64_t reduce_size) {
  Reduce<Prod>(a, out, reduce_size);
}

void ReduceMax(const Buffer& a, Buffer& out, int64_t reduce_size) {
  Reduce<Max>(a, out, reduce_size);
}

void ReduceMin(const Buffer& a, Buffer& out, int64_t reduce_size) {
  Reduce<Min>(a, out, reduce_size);
}

void ReduceArgmax(const Buffer& a, Buffer& out, int64_t reduce_size) {
  ReduceArg("reduce_argmax", a, out, reduce_size, [](auto x, auto y) { return x > y; });
}

void ReduceArgmin(const Buffer& a, Buffer& out, int64_t reduce_size) {
  ReduceArg("reduce_argmin", a, out, reduce_size, [](auto x, auto y) { return x < y; });
}

}  // namespace needle
