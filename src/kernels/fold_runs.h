// Sums, products, maxima and minima of runs: what a reduction of arrays and one of views are made of.
#ifndef NEEDLE_KERNELS_FOLD_RUNS_H_
#define NEEDLE_KERNELS_FOLD_RUNS_H_

#include <algorithm>
#include <type_traits>
#include <vector>

#include "arithmetic.h"
#include "fold.h"
#include "parallel.h"
#include "rounding.h"
#include "row_loops.h"

namespace needle {

inline constexpr int64_t kFoldGrain = 1 << 15;  // elements
inline constexpr int64_t kFoldPiece = 1 << 16;  // a longer run is cut, so that threads can share it

namespace fold {

// what is folded; an identity is where it starts, and the result of an empty run
struct Sum {
  static constexpr const char* kName = "reduce_sum";
  static constexpr bool kHasIdentity = true;
  static constexpr int kIdentity = 0;
  template <typename T>
  static constexpr auto kRun = &FoldLoops<T>::sum;
  template <typename T>
  static constexpr auto kColumns = &FoldLoops<T>::sum_columns;
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
  static constexpr auto kRun = &FoldLoops<T>::max;
  template <typename T>
  static constexpr auto kColumns = &FoldLoops<T>::max_columns;
  template <typename T>
  static T Apply(T a, T b) {
    return Maximum(a, b);
  }
};

struct Min {
  static constexpr const char* kName = "reduce_min";
  static constexpr bool kHasIdentity = false;
  template <typename T>
  static constexpr auto kRun = &FoldLoops<T>::min;
  template <typename T>
  static constexpr auto kColumns = &FoldLoops<T>::min_columns;
  template <typename T>
  static T Apply(T a, T b) {
    return Minimum(a, b);
  }
};

}  // namespace fold

/// Whether there are loops over vectors for it.
template <typename Op, typename T>
constexpr bool kHasFoldLoops = kIsFloat<T> && !std::is_same_v<Op, fold::Prod>;

template <typename T>
const FoldLoops<T>& FoldLoopsInUse() {
  return NEEDLE_DISPATCH(TableOfFolds<T>)();
}

template <typename Op, typename T>
T FoldOneByOne(const T* run, int64_t length) {
  const auto apply = [](T x, T y) { return Op::Apply(x, y); };
  if constexpr (Op::kHasIdentity) {
    return FoldRun(run, length, T(Op::kIdentity), apply);
  } else {  // the first is counted twice, which no maximum minds
    return FoldRun(run, length, run[0], apply);
  }
}

/// The fold of a run, as a function that was looked up once for many runs.
template <typename Op, typename T>
auto FoldInUse() {
  T (*loop)(const T*, int64_t) = &FoldOneByOne<Op, T>;
  if constexpr (kHasFoldLoops<Op, T>) loop = FoldLoopsInUse<T>().*Op::template kRun<T>;
  return [loop](const T* run, int64_t length) {
    if constexpr (Op::kHasIdentity) {
      if (length == 0) return T(Op::kIdentity);
    }
    return loop(run, length);
  };
}

/// One long run: its pieces on several threads, then the pieces' results.
template <typename Op, typename T>
T FoldLongRun(const T* run, int64_t length) {
  const auto fold = FoldInUse<Op, T>();
  const int64_t pieces = CeilDiv(length, kFoldPiece);
  std::vector<T> folded(static_cast<size_t>(pieces));
  ParallelFor(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      const int64_t here = std::min(kFoldPiece, length - i * kFoldPiece);
      folded[static_cast<size_t>(i)] = fold(run + i * kFoldPiece, here);
    }
  });
  return fold(folded.data(), pieces);
}

}  // namespace needle

#endif  // NEEDLE_KERNELS_FOLD_RUNS_H_
