#include "../strided.h"

#include <algorithm>
#include <cstring>

#include "../view.h"
#include "launch.h"
#include "transpose.h"

namespace needle {
namespace {

using cuda::BlocksFor;
using cuda::kThreads;

constexpr int kMaxAxes = 8;

// ---- views that a kernel can be given -------------------------------------------------------------------------------

/// A view as a kernel's argument: plain numbers, the last axis first.  Index is uint32_t where that is enough, since a
/// GPU divides 64-bit integers in a hundred instructions.
template <typename Index>
struct DeviceView {
  int axes;
  Index extent[kMaxAxes];
  int64_t stride[kMaxAxes];
  int64_t offset;

  /// Where the view's i-th element lies: the digits of i in the mixed radix of the extents, times the strides.
  __device__ int64_t Position(Index i) const {
    int64_t position = offset;
    for (int axis = 0; axis < axes; axis++) {
      const Index rest = i / extent[axis];
      position += static_cast<int64_t>(i - rest * extent[axis]) * stride[axis];
      i = rest;
    }
    return position;
  }
};

template <typename Index>
DeviceView<Index> ForDevice(const char* who, const View& view) {
  const size_t axes = view.shape.size();
  if (axes > kMaxAxes) {
    Refuse(who, "a view of shape " + Text(view.shape) + " and strides " + Text(view.strides) +
                    ", wanted one that 8 axes can describe; reorder fewer axes at a time, or on cpu()");
  }
  DeviceView<Index> out{static_cast<int>(axes), {}, {}, view.offset};
  for (size_t axis = 0; axis < axes; axis++) {
    out.extent[axis] = static_cast<Index>(view.shape[axes - 1 - axis]);
    out.stride[axis] = view.strides[axes - 1 - axis];
  }
  return out;
}

// ---- the kernels ----------------------------------------------------------------------------------------------------

template <typename Word, typename Index>
__global__ void GatherOnDevice(const Word* a, DeviceView<Index> view, Word* out, int64_t size) {
  GRID_STRIDE(i, size) out[i] = a[view.Position(static_cast<Index>(i))];
}

template <typename Word, typename Index>
__global__ void ScatterOnDevice(const Word* a, DeviceView<Index> view, Word* out, int64_t size) {
  GRID_STRIDE(i, size) out[view.Position(static_cast<Index>(i))] = a[i];
}

template <typename Word, typename Index>
__global__ void ScatterNumberOnDevice(Word value, DeviceView<Index> view, Word* out, int64_t size) {
  GRID_STRIDE(i, size) out[view.Position(static_cast<Index>(i))] = value;
}

// ---- the launchers --------------------------------------------------------------------------------------------------

// copies look at the width of an element alone
using Word1 = uint8_t;
using Word4 = uint32_t;
using Word8 = uint64_t;

/// Call visitor(null pointer to the word as wide as the dtype, null pointer to the index type).
template <typename Visitor>
void VisitWidths(DType dtype, int64_t size, const Visitor& visitor) {
  const auto with_index = [&](auto* word) {
    if (size <= UINT32_MAX) return visitor(word, static_cast<uint32_t*>(nullptr));
    visitor(word, static_cast<uint64_t*>(nullptr));
  };
  switch (ItemSize(dtype)) {
    case 1:
      return with_index(static_cast<Word1*>(nullptr));
    case 4:
      return with_index(static_cast<Word4*>(nullptr));
    default:
      return with_index(static_cast<Word8*>(nullptr));
  }
}

template <typename Word, typename Index>
void LaunchGather(const Buffer& a, const View& view, Buffer& out) {
  GatherOnDevice<Word, Index><<<BlocksFor(out.size()), kThreads>>>(static_cast<const Word*>(a.data()),
                                                                   ForDevice<Index>("compact", view),
                                                                   static_cast<Word*>(out.data()), out.size());
  CUDA_CHECK(cudaGetLastError());
}

/// One thread if two elements of the view may be one: the last to be written is to win.
template <typename Word, typename Index>
void LaunchScatter(const Buffer& a, const View& view, Buffer& out) {
  const bool serial = MayRepeat(view);
  ScatterOnDevice<Word, Index><<<serial ? 1 : BlocksFor(a.size()), serial ? 1 : kThreads>>>(
      static_cast<const Word*>(a.data()), ForDevice<Index>("ewise_setitem", view), static_cast<Word*>(out.data()),
      a.size());
  CUDA_CHECK(cudaGetLastError());
}

template <typename Word, typename Index>
void LaunchScatterNumber(Word value, const View& view, Buffer& out, int64_t size) {
  const bool serial = MayRepeat(view);
  ScatterNumberOnDevice<Word, Index><<<serial ? 1 : BlocksFor(size), serial ? 1 : kThreads>>>(
      value, ForDevice<Index>("scalar_setitem", view), static_cast<Word*>(out.data()), size);
  CUDA_CHECK(cudaGetLastError());
}

/// The number's bytes as a word.
template <typename Word>
Word AsWord(const Scalar& val, DType dtype) {
  Word word = 0;
  Visit(dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const T value = val.as<T>("scalar_setitem");
    std::memcpy(&word, &value, std::min(sizeof(word), sizeof(value)));
  });
  return word;
}

}  // namespace

// ---- the functions that Python calls --------------------------------------------------------------------------------

void Compact(const Buffer& a, Buffer& out, const Dims& shape, const Dims& strides, int64_t offset) {
  const Dims safe = CheckedStrides("compact", shape, strides, offset, a.size());
  CheckBuffer("compact", "out", out, CheckedSize("compact", shape), a.dtype());
  CheckApart("compact", a, out);
  if (out.size() == 0) return;
  const View view = Simplify(shape, safe, offset);
  if (cuda::CompactTransposed(a, view, out)) return;
  VisitWidths(a.dtype(), out.size(), [&](auto* word, auto* index) {
    LaunchGather<std::remove_pointer_t<decltype(word)>, std::remove_pointer_t<decltype(index)>>(a, view, out);
  });
}

void EwiseSetitem(const Buffer& a, Buffer& out, const Dims& shape, const Dims& strides, int64_t offset) {
  const Dims safe = CheckedStrides("ewise_setitem", shape, strides, offset, out.size());
  CheckBuffer("ewise_setitem", "a", a, CheckedSize("ewise_setitem", shape), out.dtype());
  if (a.size() == 0) return;
  if (a.Overlaps(out)) {  // x[::-1] = x: read all of it before the first write
    Buffer copy(a.size(), a.dtype());
    CUDA_CHECK(cudaMemcpyAsync(copy.data(), a.data(), static_cast<size_t>(a.bytes()), cudaMemcpyDeviceToDevice));
    return EwiseSetitem(copy, out, shape, strides, offset);
  }
  const View view = Simplify(shape, safe, offset);
  VisitWidths(a.dtype(), a.size(), [&](auto* word, auto* index) {
    LaunchScatter<std::remove_pointer_t<decltype(word)>, std::remove_pointer_t<decltype(index)>>(a, view, out);
  });
}

void ScalarSetitem(int64_t size, const Scalar& val, Buffer& out, const Dims& shape, const Dims& strides,
                   int64_t offset) {
  const Dims safe = CheckedStrides("scalar_setitem", shape, strides, offset, out.size());
  CheckSize("scalar_setitem", "the shape", CheckedSize("scalar_setitem", shape), size);
  const Dims once = WithoutRepeats(shape, safe);
  const int64_t count = CheckedSize("scalar_setitem", once);
  const View view = Simplify(once, safe, offset);
  VisitWidths(out.dtype(), count, [&](auto* word, auto* index) {
    using Word = std::remove_pointer_t<decltype(word)>;
    const Word value = AsWord<Word>(val, out.dtype());
    if (count == 0) return;
    LaunchScatterNumber<Word, std::remove_pointer_t<decltype(index)>>(value, view, out, count);
  });
}

}  // namespace needle
