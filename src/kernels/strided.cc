#include "strided.h"

#include <algorithm>
#include <cstring>

#include "parallel.h"
#include "rounding.h"
#include "view.h"

namespace needle {
namespace {

constexpr int64_t kGrain = 1 << 15;  // elements

// Copies look at the width of an element alone.  They may alias what holds floats.
using Word1 = uint8_t;
using Word4 __attribute__((may_alias)) = uint32_t;
using Word8 __attribute__((may_alias)) = uint64_t;

/// Call visitor(null pointer to the word) for the word as wide as a dtype.
template <typename Visitor>
void VisitWord(DType dtype, const Visitor& visitor) {
  switch (ItemSize(dtype)) {
    case 1:
      return visitor(static_cast<Word1*>(nullptr));
    case 4:
      return visitor(static_cast<Word4*>(nullptr));
    default:
      return visitor(static_cast<Word8*>(nullptr));
  }
}

/// Where the run with this number begins: its number in the mixed radix of the outer axes, times the strides.
int64_t RunPosition(const View& view, int64_t run) {
  int64_t position = view.offset;
  for (size_t axis = view.shape.size() - 1; axis-- > 0; run /= view.shape[axis]) {
    position += run % view.shape[axis] * view.strides[axis];
  }
  return position;
}

/// Call visit(i, position) for each run along the last axis: its first element is the view's i-th and lies at position.
template <typename Visit>
void ForEachRun(const View& view, int64_t size, int64_t grain, const Visit& visit) {
  const int64_t length = view.RunLength();
  if (view.shape.size() < 2) return visit(0, view.offset);
  ParallelFor(size / length, std::max<int64_t>(1, grain / length), [&](int64_t begin, int64_t end) {
    for (int64_t run = begin; run < end; run++) visit(run * length, RunPosition(view, run));
  });
}

template <typename Word>
void CopyRun(const Word* from, int64_t from_stride, Word* to, int64_t to_stride, int64_t length) {
  if (from_stride == 1 && to_stride == 1) {
    std::memcpy(to, from, static_cast<size_t>(length) * sizeof(Word));
  } else {
    for (int64_t i = 0; i < length; i++) to[i * to_stride] = from[i * from_stride];
  }
}

// ---- transposition --------------------------------------------------------------------------------------------------

constexpr int64_t kTile = 16;  // rows and columns: of float32, a cache line each

/// The axis before the last along which elements lie side by side; the last one if there is none.
size_t AxisInMemoryOrder(const View& view) {
  for (size_t axis = 0; axis + 1 < view.shape.size(); axis++) {
    if (view.strides[axis] == 1) return axis;
  }
  return view.shape.size() - 1;
}

/// to[r * to_stride + c] = from[r + c * from_stride], tile by tile: what a tile reads and writes stays in the cache.
template <typename Word>
void Transpose(const Word* from, int64_t from_stride, Word* to, int64_t to_stride, int64_t rows, int64_t columns) {
  for (int64_t first = 0; first < columns; first += kTile) {
    const int64_t end = std::min(columns, first + kTile);
    for (int64_t r = 0; r < rows; r++) {
      for (int64_t c = first; c < end; c++) to[r * to_stride + c] = from[r + c * from_stride];
    }
  }
}

/// Copy a view whose axis `rows` lies in memory order, as its last axis does not, into compact `to`.
template <typename Word>
void CopyTransposed(const Word* from, const View& view, size_t rows, Word* to) {
  View outer = view;  // without the two axes, but with the rows' tiles
  const size_t last = view.shape.size() - 1;
  const int64_t tiles = CeilDiv(view.shape[rows], kTile);
  outer.shape[rows] = tiles, outer.strides[rows] = kTile;
  outer.shape[last] = 1;
  int64_t count = 1, step = 1;
  Dims steps(view.shape.size());  // of `to`
  for (size_t axis = view.shape.size(); axis-- > 0; step *= view.shape[axis]) steps[axis] = step;
  for (int64_t extent : outer.shape) count *= extent;
  const int64_t work = kTile * view.shape[last];
  ParallelFor(count, std::max<int64_t>(1, kGrain / work), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      int64_t at_from = view.offset, at_to = 0, tile = 0, rest = i;
      for (size_t axis = last; axis-- > 0; rest /= outer.shape[axis]) {
        const int64_t index = rest % outer.shape[axis];
        at_from += index * outer.strides[axis];
        at_to += index * steps[axis] * (axis == rows ? kTile : 1);
        if (axis == rows) tile = index;
      }
      Transpose(from + at_from, view.strides[last], to + at_to, steps[rows],
                std::min(kTile, view.shape[rows] - tile * kTile), view.shape[last]);
    }
  });
}

}  // namespace

void Compact(const Buffer& a, Buffer& out, const Dims& shape, const Dims& strides, int64_t offset) {
  const Dims safe = CheckedStrides("compact", shape, strides, offset, a.size());
  CheckBuffer("compact", "out", out, CheckedSize("compact", shape), a.dtype());
  CheckApart("compact", a, out);
  if (out.size() == 0) return;
  const View view = Simplify(shape, safe, offset);
  VisitWord(a.dtype(), [&](auto* word) {
    auto* from = static_cast<decltype(word)>(const_cast<void*>(a.data()));
    auto* to = static_cast<decltype(word)>(out.data());
    const size_t rows = AxisInMemoryOrder(view);
    if (view.RunStride() != 1 && rows + 1 < view.shape.size() && view.shape[rows] > 1) {
      return CopyTransposed(from, view, rows, to);
    }
    ForEachRun(view, out.size(), kGrain, [&](int64_t i, int64_t position) {
      CopyRun(from + position, view.RunStride(), to + i, 1, view.RunLength());
    });
  });
}

void EwiseSetitem(const Buffer& a, Buffer& out, const Dims& shape, const Dims& strides, int64_t offset) {
  const Dims safe = CheckedStrides("ewise_setitem", shape, strides, offset, out.size());
  CheckBuffer("ewise_setitem", "a", a, CheckedSize("ewise_setitem", shape), out.dtype());
  if (a.size() == 0) return;
  if (a.Overlaps(out)) {  // x[::-1] = x: read all of it before the first write
    Buffer copy(a.size(), a.dtype());
    std::memcpy(copy.data(), a.data(), static_cast<size_t>(a.bytes()));
    return EwiseSetitem(copy, out, shape, strides, offset);
  }
  const View view = Simplify(shape, safe, offset);
  VisitWord(a.dtype(), [&](auto* word) {
    auto* from = static_cast<decltype(word)>(const_cast<void*>(a.data()));
    auto* to = static_cast<decltype(word)>(out.data());
    ForEachRun(view, a.size(), MayRepeat(view) ? a.size() : kGrain, [&](int64_t i, int64_t position) {
      CopyRun(from + i, 1, to + position, view.RunStride(), view.RunLength());
    });
  });
}

void ScalarSetitem(int64_t size, const Scalar& val, Buffer& out, const Dims& shape, const Dims& strides,
                   int64_t offset) {
  const Dims safe = CheckedStrides("scalar_setitem", shape, strides, offset, out.size());
  CheckSize("scalar_setitem", "the shape", CheckedSize("scalar_setitem", shape), size);
  const Dims once = WithoutRepeats(shape, safe);
  const int64_t count = CheckedSize("scalar_setitem", once);
  const View view = Simplify(once, safe, offset);
  Visit(out.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const T value = val.as<T>("scalar_setitem");
    T* to = out.as<T>();
    if (count == 0) return;
    ForEachRun(view, count, MayRepeat(view) ? count : kGrain, [&](int64_t, int64_t position) {
      for (int64_t i = 0; i < view.RunLength(); i++) to[position + i * view.RunStride()] = value;
    });
  });
}

}  // namespace needle
