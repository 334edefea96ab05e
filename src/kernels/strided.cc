#include "strided.h"

#include <algorithm>
#include <cstring>

#include "parallel.h"
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
