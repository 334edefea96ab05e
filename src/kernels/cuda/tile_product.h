// One matrix product for everything that is one: plain, batched, and convolutions, whose matrices nobody ever made.
//
// A block computes a tile of 64 x 64 results.  It walks along the inner axis in steps of 16: its threads bring a tile
// of 64 x 16 of either operand to shared memory, where each element is needed 64 times; and each thread computes 4 x 4
// results in registers, so that 8 reads from shared memory serve 16 multiplications.
#ifndef NEEDLE_KERNELS_CUDA_TILE_PRODUCT_H_
#define NEEDLE_KERNELS_CUDA_TILE_PRODUCT_H_

#include "launch.h"

namespace needle {
namespace cuda {

constexpr int kTile = 64;
constexpr int kDepth = 16;
constexpr int kMicro = 4;                          // a thread's results are kMicro x kMicro
constexpr int kLoads = kTile * kDepth / kThreads;  // elements of an operand's tile that one thread brings
constexpr int kPitch = kTile + 4;                  // 4 more: threads that store a column meet fewer bank conflicts
constexpr int kThreadsInRow = kTile / kMicro;
static_assert(kThreadsInRow * kThreadsInRow == kThreads);

/// A product of (m, n) and (n, p) in `layers`: those of a batch, or the pieces of a long inner axis.
struct Product {
  int64_t m, n, p, layers;
  int64_t inner_step, inner_length;  // layer i takes inner_length of the inner axis, from i * inner_step

  int64_t Tiles() const { return layers * ((m + kTile - 1) / kTile) * ((p + kTile - 1) / kTile); }
};

// An operand is what gives the element at (outer, inner): for the left one the outer axis is that of rows, for the
// right one that of columns.  What the two numbers mean is worked out apart, Outer(i) and Inner(k), since both are used
// again and again; kInnerContiguous says along which axis neighbours lie in memory.

/// A matrix in memory, row-major; as the left operand its inner axis is contiguous, as the right one the outer is.
template <typename T, bool kInnerIsContiguous>
struct Dense {
  static constexpr bool kInnerContiguous = kInnerIsContiguous;
  using OuterPlace = int64_t;

  const T* data;
  int64_t pitch, layer_stride;

  __device__ void MoveTo(int64_t layer) { data += layer * layer_stride; }
  __device__ int64_t Outer(int64_t i) const { return kInnerContiguous ? i * pitch : i; }
  __device__ int64_t Inner(int64_t k) const { return kInnerContiguous ? k : k * pitch; }
  __device__ T At(int64_t outer, int64_t inner) const { return data[outer + inner]; }
};

/// A thread's part in bringing tiles of one operand: always the same places of the tile, and neighbours in a warp take
/// neighbours in memory.
template <typename T, typename Operand>
struct TileLoader {
  static constexpr bool kInner = Operand::kInnerContiguous;

  typename Operand::OuterPlace place[kInner ? kLoads : 1];
  bool inside[kInner ? kLoads : 1];
  T held[kLoads];

  __device__ static int OuterOf(int load) {
    const int thread = threadIdx.x;
    return kInner ? thread / kDepth + load * (kThreads / kDepth) : thread % kTile;
  }
  __device__ static int InnerOf(int load) {
    const int thread = threadIdx.x;
    return kInner ? thread % kDepth : thread / kTile + load * (kThreads / kTile);
  }

  __device__ void Start(const Operand& operand, int64_t first, int64_t end) {
#pragma unroll
    for (int load = 0; load < (kInner ? kLoads : 1); load++) {
      const int64_t i = first + OuterOf(load);
      inside[load] = i < end;
      if (inside[load]) place[load] = operand.Outer(i);
    }
  }

  /// From global memory to registers.  What lies beyond the edge counts as 0.
  __device__ void Fetch(const Operand& operand, int64_t first, int64_t end) {
#pragma unroll
    for (int load = 0; load < kLoads; load++) {
      const int64_t k = first + InnerOf(load);
      const int own = kInner ? load : 0;
      held[load] = inside[own] && k < end ? operand.At(place[own], operand.Inner(k)) : T(0);
    }
  }

  /// From registers to shared memory.
  __device__ void Put(T (*tile)[kPitch]) const {
#pragma unroll
    for (int load = 0; load < kLoads; load++) tile[InnerOf(load)][OuterOf(load)] = held[load];
  }
};

/// A thread's kMicro x kMicro sums grow by a tile's products.
template <typename T>
__device__ void Accumulate(const T (*left)[kPitch], const T (*right)[kPitch], int row, int column,
                           T (&sums)[kMicro][kMicro]) {
#pragma unroll
  for (int k = 0; k < kDepth; k++) {
    T a[kMicro], b[kMicro];
#pragma unroll
    for (int i = 0; i < kMicro; i++) a[i] = left[k][row + i], b[i] = right[k][column + i];
#pragma unroll
    for (int i = 0; i < kMicro; i++) {
#pragma unroll
      for (int j = 0; j < kMicro; j++) sums[i][j] += a[i] * b[j];
    }
  }
}

template <typename T, typename Left, typename Right>
__global__ void __launch_bounds__(kThreads) TileProduct(Left a, Right b, T* out, Product product) {
  __shared__ T left[kDepth][kPitch];
  __shared__ T right[kDepth][kPitch];
  const int row = threadIdx.x / kThreadsInRow * kMicro, column = threadIdx.x % kThreadsInRow * kMicro;
  const int64_t tile_columns = (product.p + kTile - 1) / kTile, tile_rows = (product.m + kTile - 1) / kTile;
  const int64_t tiles = product.layers * tile_rows * tile_columns;

  for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int64_t layer = tile / (tile_rows * tile_columns);
    const int64_t first_row = tile / tile_columns % tile_rows * kTile, first_column = tile % tile_columns * kTile;
    const int64_t begin = layer * product.inner_step;
    const int64_t end = begin + product.inner_length < product.n ? begin + product.inner_length : product.n;

    Left a_here = a;
    Right b_here = b;
    a_here.MoveTo(layer);
    b_here.MoveTo(layer);
    TileLoader<T, Left> load_a;
    TileLoader<T, Right> load_b;
    load_a.Start(a_here, first_row, product.m);
    load_b.Start(b_here, first_column, product.p);

    T sums[kMicro][kMicro] = {};
    load_a.Fetch(a_here, begin, end);
    load_b.Fetch(b_here, begin, end);
    for (int64_t k = begin; k < end; k += kDepth) {
      load_a.Put(left);
      load_b.Put(right);
      __syncthreads();
      if (k + kDepth < end) {  // the next step's elements are on their way while this step is computed
        load_a.Fetch(a_here, k + kDepth, end);
        load_b.Fetch(b_here, k + kDepth, end);
      }
      Accumulate(left, right, row, column, sums);
      __syncthreads();  // nobody may overwrite a tile that is still being read
    }

    T* results = out + layer * product.m * product.p;
    for (int i = 0; i < kMicro && first_row + row + i < product.m; i++) {
      for (int j = 0; j < kMicro && first_column + column + j < product.p; j++) {
        results[(first_row + row + i) * product.p + first_column + column + j] = sums[i][j];
      }
    }
  }
}

template <typename T, typename Left, typename Right>
void LaunchTileProduct(const Left& a, const Right& b, T* out, const Product& product) {
  if (product.Tiles() == 0) return;
  TileProduct<T, Left, Right><<<BlocksFor(product.Tiles(), 1), kThreads>>>(a, b, out, product);
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace cuda
}  // namespace needle

#endif  // NEEDLE_KERNELS_CUDA_TILE_PRODUCT_H_
