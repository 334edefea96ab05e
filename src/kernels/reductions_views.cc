// Reductions of views over any axes, without a copy where neighbours in memory can be folded together.
#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "fold_runs.h"
#include "reductions.h"
#include "scratch.h"
#include "strided.h"
#include "view.h"

namespace needle {
namespace {

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
  constexpr int64_t kStrip = 2048;     // columns
  constexpr int64_t kMostPieces = 64;  // of rows, whose results are folded on one thread
  const auto fold = FoldLoopsInUse<T>().*Op::template kColumns<T>;
  if (rows * cols <= 2 * kFoldPiece) return fold(a, row_stride, rows, out, cols, a);
  if (cols >= 4 * kStrip) {
    // each by itself: the order in which a strip is folded depends on its width
    return ParallelFor(CeilDiv(cols, kStrip), 1, [&](int64_t begin, int64_t end) {
      for (int64_t j = begin * kStrip; j < std::min(cols, end * kStrip); j += kStrip) {
        fold(a + j, row_stride, rows, out + j, std::min(kStrip, cols - j), a + rows * row_stride);
      }
    });
  }
  const int64_t here = std::max(kFoldPiece / cols + 1, CeilDiv(rows, kMostPieces)), pieces = CeilDiv(rows, here);
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
  if (rows * cols > 2 * kFoldPiece) {  // each is shared among the threads
    for (int64_t block = 0; block < count; block++) fold(block);
    return;
  }
  ParallelFor(count, std::max<int64_t>(1, kFoldGrain / (rows * cols)), [&](int64_t begin, int64_t end) {
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
        folded[i] = length > 2 * kFoldPiece ? FoldLongRun<Op>(run, length) : fold(run, length);
      }
      out[result] = fold(folded.data(), static_cast<int64_t>(runs.size()));
    }
  };
  if (length > 2 * kFoldPiece) return fold_all(0, count);  // each is shared among the threads
  ParallelFor(count, std::max<int64_t>(1, kFoldGrain / work), fold_all);
}

using ReduceRows = void (*)(const Buffer& a, Buffer& out, int64_t reduce_size);

template <typename Op>
void ReduceView(const char* who, ReduceRows reduce_rows, const Buffer& a, Buffer& out, const Dims& shape,
                const Dims& strides, int64_t offset, int64_t kept_axes) {
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
    reduce_rows(copy, out, size / out.size());
  });
}

}  // namespace

void ViewReduceSum(const Buffer& a, Buffer& out, const Dims& shape, const Dims& strides, int64_t offset, int64_t kept) {
  ReduceView<fold::Sum>("view_reduce_sum", &ReduceSum, a, out, shape, strides, offset, kept);
}

void ViewReduceMax(const Buffer& a, Buffer& out, const Dims& shape, const Dims& strides, int64_t offset, int64_t kept) {
  ReduceView<fold::Max>("view_reduce_max", &ReduceMax, a, out, shape, strides, offset, kept);
}

void ViewReduceMin(const Buffer& a, Buffer& out, const Dims& shape, const Dims& strides, int64_t offset, int64_t kept) {
  ReduceView<fold::Min>("view_reduce_min", &ReduceMin, a, out, shape, strides, offset, kept);
}

}  // namespace needle
