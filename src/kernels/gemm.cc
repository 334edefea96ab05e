#include "gemm.h"

#include <algorithm>

#include "parallel.h"
#include "scratch.h"

namespace needle {
namespace {

// Blocks: kRows x kDepth of a stay in the second-level cache, kDepth x kColumns of b in the third, one panel in the
// first.
constexpr int64_t kDepth = 384;
constexpr int64_t kRows = 144;
constexpr int64_t kColumns = 3072;
constexpr int64_t kThreadWork = 1 << 19;  // multiplications that are worth a thread

int64_t CeilDiv(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

int64_t RoundUp(int64_t a, int64_t multiple) {
  return CeilDiv(a, multiple) * multiple;
}

/// One block of the two outer loops: out's columns [0, columns) (+)= a's columns [0, depth) @ b.
template <typename T>
struct Block {
  const GemmKernels<T>& kernels;
  const T *a, *b;
  T* out;
  int64_t rows, inner, depth, stride, columns;  // a has rows of `inner`, b and out of `stride`
  bool accumulate;

  void PackPanels(T* panels, int64_t grain) const {
    const int64_t width = kernels.tile_columns;
    ParallelFor(CeilDiv(columns, width), grain, [&](int64_t begin, int64_t end) {
      kernels.pack_b(b + begin * width, stride, depth, std::min(columns, end * width) - begin * width,
                     panels + begin * width * depth);
    });
  }

  /// The part of out in rows [row, row_end) and columns [column, column_end), block of rows by block of rows.
  void Multiply(const T* panels, int64_t row, int64_t row_end, int64_t column, int64_t column_end) const {
    Scratch scratch;
    const int64_t step = kRows / kernels.tile_rows * kernels.tile_rows;
    T* strips = scratch.Get<T>(static_cast<size_t>(step * depth));
    for (; row < row_end; row += step) {
      const int64_t here = std::min(step, row_end - row);
      kernels.pack_a(a + row * inner, inner, here, depth, strips);
      kernels.multiply(strips, panels + column * depth, out + row * stride + column, stride, here, depth,
                       column_end - column, accumulate);
    }
  }

  /// All of out: threads share the longer side.
  void MultiplyAll(const T* panels, int64_t pieces) const {
    const bool by_rows = rows * kernels.tile_columns >= columns * kernels.tile_rows;
    const int64_t tile = by_rows ? kernels.tile_rows : kernels.tile_columns, length = by_rows ? rows : columns;
    const int64_t tiles = CeilDiv(length, tile);
    ParallelFor(tiles, CeilDiv(tiles, pieces), [&](int64_t begin, int64_t end) {
      begin *= tile;
      end = std::min(end * tile, length);
      by_rows ? Multiply(panels, begin, end, 0, columns) : Multiply(panels, 0, rows, begin, end);
    });
  }
};

}  // namespace

template <typename T>
void Gemm(const T* a, const T* b, T* out, int64_t rows, int64_t inner, int64_t columns) {
  const GemmKernels<T> kernels = NEEDLE_DISPATCH(TableOfGemm<T>)();
  Scratch scratch;
  if (inner == 0) return std::fill(out, out + rows * columns, T(0));

  const int64_t depth_step = CeilDiv(inner, CeilDiv(inner, kDepth));  // equal blocks, none of them thin
  const int64_t width = std::min(columns, kColumns);
  T* panels = scratch.Get<T>(static_cast<size_t>(RoundUp(width, kernels.tile_columns) * depth_step));
  for (int64_t column = 0; column < columns; column += width) {
    for (int64_t k = 0; k < inner; k += depth_step) {
      const Block<T> block{kernels,
                           a + k,
                           b + k * columns + column,
                           out + column,
                           rows,
                           inner,
                           std::min(depth_step, inner - k),
                           columns,
                           std::min(width, columns - column),
                           k > 0};
      const int64_t pieces = 1 + rows * block.depth * block.columns / kThreadWork;
      block.PackPanels(panels, pieces > 1 ? 1 : columns);
      block.MultiplyAll(panels, pieces);
    }
  }
}

#define NEEDLE_INSTANTIATE(T) template void Gemm<T>(const T*, const T*, T*, int64_t, int64_t, int64_t);
NEEDLE_INSTANTIATE(float)
NEEDLE_INSTANTIATE(double)

}  // namespace needle
