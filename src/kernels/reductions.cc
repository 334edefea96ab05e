#include "reductions.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <type_traits>
#include <vector>

#include "arithmetic.h"
#include "fold.h"
#include "parallel.h"
#include "rounding.h"
#include "row_loops.h"
#include "scratch.h"
#include "strided.h"
#include "view.h"

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

/// Whether there are loops over vectors for it.
template <typename Op, typename T>
constexpr bool kHasLoops = kIsFloat<T> && !std::is_same_v<Op, Prod>;

template <typename T>
const FoldLoops<T>& LoopsInUse() {
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
  if constexpr (kHasLoops<Op, T>) loop = LoopsInUse<T>().*Op::template kRun<T>;
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
  const int64_t pieces = CeilDiv(length, kPiece);
  std::vector<T> folded(static_cast<size_t>(pieces));
  ParallelFor(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      const int64_t here = std::min(kPiece, length - i * kPiece);
      folded[static_cast<size_t>(i)] = fold(run + i * kPiece, here);
    }
  });
  return fold(folded.data(), pieces);
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
    const int64_t grain = kGrain / std::max<int64_t>(1, reduce_size);
    ParallelFor(out.size(), grain, [=, fold = FoldInUse<Op, T>()](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) to[i] = fold(in + i * reduce_size, reduce_size);
    });
  });
}

// ---- reductions of views --------------------------------------------------------------------------------------------

/// The positions that a view without its last axis describes, in row-major order.
std::vector<int64_t> RunPositions(const View& view) {
  std::vector<int64_t> positions = {view.offset};
  for (size_t axis = 0; axis + 1 < view.shape.size(); axis++) {
    std::vector<int64_t> more;
    more.reserve(positions.size() * static_cast<size_t>(view.shape[axis]));
    for (int64_t position : positions) {
      for (int64_t i = 0; i < view.shape[axis]; i++) more.push_back(position + i * view.strides[axis]);
    }
    positions.swap(more);
  }
  return positions;
}

/// The reduced axes with the smallest stride last, so that they merge: a sum is the same in any order but for rounding.
View InMemoryOrder(const Dims& shape, const Dims& strides, size_t first) {
  std::vector<size_t> axes(shape.size() - first);
  std::iota(axes.begin(), axes.end(), first);
  std::stable_sort(axes.begin(), axes.end(),
                   [&](size_t x, size_t y) { return std::abs(strides[x]) > std::abs(strides[y]); });
  Dims ordered, steps;
  for (size_t axis : axes) ordered.push_back(shape[axis]), steps.push_back(strides[axis]);
  return Simplify(ordered, steps, 0);
}

/// out[j] = the fold of a[k * row_stride + j], on several threads: each has columns of its own, or a piece of the rows.
template <typename Op, typename T>
void FoldColumns(const T* a, int64_t row_stride, int64_t rows, T* out, int64_t cols) {
  constexpr int64_t kStrip = 1024;     // columns
  constexpr int64_t kMostPieces = 16;  // of rows, whose results are folded on one thread
  const auto fold = LoopsInUse<T>().*Op::template kColumns<T>;
  if (rows * cols <= 2 * kPiece) return fold(a, row_stride, rows, out, cols, a);
  if (cols >= 8 * kStrip) {
    const int64_t strips = CeilDiv(cols, kStrip);
    return ParallelFor(strips, 1, [&](int64_t begin, int64_t end) {
      fold(a + begin * kStrip, row_stride, rows, out + begin * kStrip, std::min(cols, end * kStrip) - begin * kStrip,
           a + rows * row_stride);
    });
  }
  const int64_t here = std::max(kPiece / cols + 1, CeilDiv(rows, kMostPieces)), pieces = CeilDiv(rows, here);
  Scratch scratch;
  T* const folded = scratch.Get<T>(static_cast<size_t>(pieces * cols));
  ParallelFor(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      const int64_t first = i * here;
      fold(a + first * row_stride, row_stride, std::min(here, rows - first), folded + i * cols, cols,
           a + std::min(rows, end * here) * row_stride);
    }
  });
  fold(folded, cols, pieces, out, cols, folded);
}

/// The kept axes end in neighbours: rows are folded onto one another.
template <typename Op, typename T>
void ReduceColumns(const T* a, const View& kept, const View& reduced, T* out) {
  const std::vector<int64_t> blocks = RunPositions(kept);
  const int64_t cols = kept.RunLength(), rows = reduced.RunLength(), count = static_cast<int64_t>(blocks.size());
  const auto fold = [&](int64_t block) {
    FoldColumns<Op>(a + blocks[static_cast<size_t>(block)], reduced.RunStride(), rows, out + block * cols, cols);
  };
  if (rows * cols > 2 * kPiece) {  // each is shared among the threads
    for (int64_t block = 0; block < count; block++) fold(block);
    return;
  }
  ParallelFor(count, std::max<int64_t>(1, kGrain / (rows * cols)), [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; block++) fold(block);
  });
}

/// The reduced axes end in neighbours: a run is folded into one number, and those of a result's runs into the result.
template <typename Op, typename T>
void ReduceRuns(const T* a, const View& kept, const View& reduced, T* out) {
  View one_by_one = kept;
  one_by_one.shape.push_back(1), one_by_one.strides.push_back(1);
  const std::vector<int64_t> results = RunPositions(one_by_one), runs = RunPositions(reduced);
  const int64_t length = reduced.RunLength(), count = static_cast<int64_t>(results.size());
  const int64_t work = length * static_cast<int64_t>(runs.size());
  const auto fold_all = [&, fold = FoldInUse<Op, T>()](int64_t begin, int64_t end) {
    std::vector<T> folded(runs.size());
    for (int64_t result = begin; result < end; result++) {
      for (size_t i = 0; i < runs.size(); i++) {
        const T* run = a + results[static_cast<size_t>(result)] + runs[i];
        folded[i] = length > 2 * kPiece ? FoldLongRun<Op>(run, length) : fold(run, length);
      }
      out[result] = fold(folded.data(), static_cast<int64_t>(runs.size()));
    }
  };
  if (length > 2 * kPiece) return fold_all(0, count);  // each is shared among the threads
  ParallelFor(count, std::max<int64_t>(1, kGrain / work), fold_all);
}

template <typename Op>
void ReduceView(const char* who, const Buffer& a, Buffer& out, const Dims& shape, const Dims& strides, int64_t offset,
                int64_t kept_axes) {
  const Dims safe = CheckedStrides(who, shape, strides, offset, a.size());
  if (kept_axes < 0 || kept_axes > static_cast<int64_t>(shape.size())) {
    Refuse(who, std::to_string(kept_axes) + " kept axes of shape " + Text(shape));
  }
  const auto split = static_cast<size_t>(kept_axes);
  const Dims kept_shape(shape.begin(), shape.begin() + kept_axes), kept_strides(safe.begin(), safe.begin() + kept_axes);
  CheckBuffer(who, "out", out, CheckedSize(who, kept_shape), a.dtype());
  CheckApart(who, a, out);
  if (out.size() == 0) return;
  const int64_t size = CheckedSize(who, shape);
  if (size == 0) Refuse(who, "shape " + Text(shape) + ", wanted an element to reduce");
  const View kept = Simplify(kept_shape, kept_strides, offset), reduced = InMemoryOrder(shape, safe, split);
  VisitOnly<FloatType>(who, a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    if (reduced.shape.size() == 1 && !kept.shape.empty() && kept.RunStride() == 1) {
      return ReduceColumns<Op>(a.as<T>(), kept, reduced, out.as<T>());
    }
    if (!reduced.shape.empty() && reduced.RunStride() == 1) {
      return ReduceRuns<Op>(a.as<T>(), kept, reduced, out.as<T>());
    }
    Buffer copy(size, a.dtype());
    Compact(a, copy, shape, safe, offset);
    Reduce<Op>(copy, out, size / out.size());
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

void ViewReduceSum(const Buffer& a, Buffer& out, const Dims& shape, const Dims& strides, int64_t offset, int64_t kept) {
  ReduceView<Sum>("view_reduce_sum", a, out, shape, strides, offset, kept);
}

void ViewReduceMax(const Buffer& a, Buffer& out, const Dims& shape, const Dims& strides, int64_t offset, int64_t kept) {
  ReduceView<Max>("view_reduce_max", a, out, shape, strides, offset, kept);
}

void ViewReduceMin(const Buffer& a, Buffer& out, const Dims& shape, const Dims& strides, int64_t offset, int64_t kept) {
  ReduceView<Min>("view_reduce_min", a, out, shape, strides, offset, kept);
}

void ReduceArgmax(const Buffer& a, Buffer& out, int64_t reduce_size) {
  ReduceArg("reduce_argmax", a, out, reduce_size, [](auto x, auto y) { return x > y; });
}

void ReduceArgmin(const Buffer& a, Buffer& out, int64_t reduce_size) {
  ReduceArg("reduce_argmin", a, out, reduce_size, [](auto x, auto y) { return x < y; });
}

}  // namespace needle
