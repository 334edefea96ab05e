// A plain copy of a transposed matrix reads, or writes, down its columns: 32 neighbours of a warp touch 32 cache lines
// to use four bytes of each.  Here a block reads a tile along the source's rows, and writes it along the result's.
#include "transpose.h"

#include <algorithm>

#include "launch.h"

namespace needle {
namespace cuda {
namespace {

constexpr int kSide = 32;  // of a tile: a warp's neighbours
constexpr int kLines = kThreads / kSide;
constexpr int kMaxOthers = 6;

/// A view as tiles of two of its axes: `from`, along which the source lies, and `to`, its last one.
struct Transposition {
  int64_t from_extent, to_extent;
  int64_t to_stride;    // in the source, where the stride of `from` is 1
  int64_t from_stride;  // in the result, where the stride of `to` is 1
  int others;           // the other axes, the last one first
  int64_t extent[kMaxOthers], source_stride[kMaxOthers], result_stride[kMaxOthers];
  int64_t offset, matrices;

  NEEDLE_HOST_DEVICE int64_t FromTiles() const { return (from_extent + kSide - 1) / kSide; }
  NEEDLE_HOST_DEVICE int64_t ToTiles() const { return (to_extent + kSide - 1) / kSide; }
  NEEDLE_HOST_DEVICE int64_t Tiles() const { return matrices * FromTiles() * ToTiles(); }
};

template <typename Word>
__global__ void TransposeTiles(const Word* a, Word* out, Transposition t) {
  __shared__ Word tile[kSide][kSide + 1];  // one more, so that a column's elements lie in different banks
  const int lane = threadIdx.x % kSide, line = threadIdx.x / kSide;
  for (int64_t i = blockIdx.x; i < t.Tiles(); i += gridDim.x) {
    const int64_t to = i % t.ToTiles() * kSide, from = i / t.ToTiles() % t.FromTiles() * kSide;
    int64_t matrix = i / t.ToTiles() / t.FromTiles(), source = t.offset, result = 0;
    for (int axis = 0; axis < t.others; axis++) {
      source += matrix % t.extent[axis] * t.source_stride[axis];
      result += matrix % t.extent[axis] * t.result_stride[axis];
      matrix /= t.extent[axis];
    }
    for (int j = line; j < kSide && to + j < t.to_extent; j += kLines) {
      if (from + lane < t.from_extent) tile[j][lane] = a[source + (to + j) * t.to_stride + from + lane];
    }
    __syncthreads();
    for (int j = line; j < kSide && from + j < t.from_extent; j += kLines) {
      if (to + lane < t.to_extent) out[result + (from + j) * t.from_stride + to + lane] = tile[lane][j];
    }
    __syncthreads();  // the next tile takes the same place
  }
}

template <typename Word>
void LaunchTranspose(const Buffer& a, Buffer& out, const Transposition& t) {
  TransposeTiles<Word>
      <<<BlocksFor(t.Tiles(), 1), kThreads>>>(static_cast<const Word*>(a.data()), static_cast<Word*>(out.data()), t);
  CUDA_CHECK(cudaGetLastError());
}

/// The axis along which the source lies, or none.
size_t ContiguousAxis(const View& view) {
  return static_cast<size_t>(std::find(view.strides.begin(), view.strides.end(), 1) - view.strides.begin());
}

}  // namespace

bool CompactTransposed(const Buffer& a, const View& view, Buffer& out) {
  const size_t axes = view.shape.size(), along = ContiguousAxis(view);
  if (along + 1 >= axes || axes > kMaxOthers + 2) return false;
  if (view.shape[along] < kSide || view.shape.back() < kSide) return false;
  Transposition t{};
  t.from_extent = view.shape[along], t.to_extent = view.shape.back(), t.to_stride = view.strides.back();
  t.offset = view.offset, t.matrices = 1;
  int64_t result_stride = view.shape.back();
  for (size_t axis = axes - 1; axis-- > 0; result_stride *= view.shape[axis]) {
    if (axis == along) {
      t.from_stride = result_stride;
      continue;
    }
    t.extent[t.others] = view.shape[axis], t.source_stride[t.others] = view.strides[axis];
    t.result_stride[t.others++] = result_stride;
    t.matrices *= view.shape[axis];
  }
  switch (ItemSize(a.dtype())) {
    case 1:
      LaunchTranspose<uint8_t>(a, out, t);
      break;
    case 4:
      LaunchTranspose<uint32_t>(a, out, t);
      break;
    default:
      LaunchTranspose<uint64_t>(a, out, t);
  }
  return true;
}

}  // namespace cuda
}  // namespace needle
