#include "gemm.h"

#include <algorithm>

#include "parallel.h"
#include "scratch.h"

namespace needle {
namespace {

// Blocks: depth x tile of b (a panel) stays in the first-level cache, rows x depth of a in the second, depth x columns
// of b in the third.
constexpr int64_t kDepthBytes = 2048;
constexpr int64_t kRows = 192;
constexpr int64_t kColumns = 1024;
constexpr int64_t kRowGrain = 2;          // threads share rows evenly, in place of whole strips
constexpr int64_t kThreadWork = 1 << 19;  // multiplications that are worth a thread

int64_t CeilDiv(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

int64_t RoundUp(int64_t a, int64_t multiple) {
  return CeilDiv(a, multiple) * multiple;
}

/// The largest size of a block, when `length` is cut into equal ones that are multiples of `tile`.
int64_t EqualBlocks(int64_t length, int64_t block, int64_t tile) {
  return RoundUp(CeilDiv(length, std::max<int64_t>(1, CeilDiv(length, block))), tile);
}

struct Range {
  int64_t begin, end;
};

/// The part of [0, length) that is `piece` of `pieces`, in whole tiles.
Range PieceOf(int64_t length, int64_t piece, int64_t pieces, int64_t tile) {
  const int64_t tiles = CeilDiv(length, tile);
  return {std::min(length, tiles * piece / pieces * tile), std::min(length, tiles * (piece + 1) / pieces * tile)};
}

/// One product, cut into blocks, and into a grid of row_pieces x column_pieces for as many threads.
template <typename T>
class Product {
 public:
  Product(const Matrix<T>& a, const Matrix<T>& b, const GemmSizes& sizes, T* out, int64_t out_stride,
          const Epilogue<T>& epilogue, int64_t threads)
      : kernels_(NEEDLE_DISPATCH(TableOfGemm<T>)()),
        a_(a),
        b_(b),
        sizes_(sizes),
        out_(out),
        out_stride_(out_stride),
        epilogue_(epilogue) {
    Share(threads);
    depth_ = std::max<int64_t>(1, EqualBlocks(sizes.inner, kDepthBytes / static_cast<int64_t>(sizeof(T)), 1));
    columns_ = EqualBlocks(sizes.columns, kColumns, kernels_.tile_columns);
    rows_ = EqualBlocks(CeilDiv(sizes.rows, row_pieces_), kRows, kernels_.tile_rows);
  }

  void Run() {
    Scratch scratch;
    const int64_t pieces = row_pieces_ * column_pieces_;
    const int64_t halves = pieces > 1 ? 2 : 1;
    panels_ = scratch.Get<T>(static_cast<size_t>((halves * columns_ + pieces * rows_) * depth_));
    strips_ = panels_ + halves * columns_ * depth_;
    ParallelTeam(pieces, [this](int64_t member, int64_t members) { Work(member, members); });
  }

 private:
  /// The grid whose pieces take the least time; of equal ones that with the most pieces of rows.
  void Share(int64_t threads) {
    int64_t least = 0;
    for (int64_t row_pieces = threads; row_pieces >= 1; row_pieces--) {
      const int64_t column_pieces = threads / row_pieces, cost = Cost(row_pieces, column_pieces);
      if (least && cost >= least) continue;
      least = cost, row_pieces_ = row_pieces, column_pieces_ = column_pieces;
    }
  }

  /// Of one step of k in one piece: multiplying rows, loading panels once for each strip, packing a.
  int64_t Cost(int64_t row_pieces, int64_t column_pieces) const {
    const int64_t rows = CeilDiv(sizes_.rows, row_pieces), strips = CeilDiv(rows, kernels_.tile_rows);
    return (rows + 2 * strips) * CeilDiv(CeilDiv(sizes_.columns, kernels_.tile_columns), column_pieces) + rows;
  }

  /// What one of a team does: the two outer loops.  Panels lie in one half of the room, then in the other: so nobody
  /// packs over what another still reads, and one barrier a block is enough.
  void Work(int64_t member, int64_t members) const {
    bool half = false;
    for (int64_t column = 0; column < sizes_.columns; column += columns_) {
      const int64_t columns = std::min(columns_, sizes_.columns - column);
      for (int64_t k = 0; k == 0 || k < sizes_.inner; k += depth_, half = !half) {
        const int64_t depth = std::min(depth_, sizes_.inner - k);
        T* panels = panels_ + (half && members > 1 ? columns_ * depth_ : 0);
        Pack({k, k + depth}, column, PieceOf(columns, member, members, kernels_.tile_columns), panels);
        if (members > 1) TeamBarrier();
        for (int64_t piece = member; piece < row_pieces_ * column_pieces_; piece += members) {
          Multiply(piece, {k, k + depth}, {column, column + columns}, panels);
        }
      }
    }
  }

  void Pack(Range k, int64_t column, Range mine, T* panels) const {
    const Matrix<T> b{b_.data + k.begin * b_.row_stride + (column + mine.begin) * b_.column_stride, b_.row_stride,
                      b_.column_stride};
    const int64_t depth = k.end - k.begin;
    kernels_.pack_b(b, depth, mine.end - mine.begin, panels + mine.begin * depth);
  }

  /// One piece's part of a block, rows by rows.
  void Multiply(int64_t piece, Range k, Range block, const T* panels) const {
    const Range rows = PieceOf(sizes_.rows, piece / column_pieces_, row_pieces_, kRowGrain);
    const Range columns =
        PieceOf(block.end - block.begin, piece % column_pieces_, column_pieces_, kernels_.tile_columns);
    const int64_t depth = k.end - k.begin;
    T* strips = strips_ + piece * rows_ * depth_;
    for (int64_t row = rows.begin; row < rows.end; row += rows_) {
      const GemmSizes sizes{std::min(rows_, rows.end - row), depth, columns.end - columns.begin};
      const int64_t column = block.begin + columns.begin;
      const T* from = a_.data + row * a_.row_stride + k.begin * a_.column_stride;
      kernels_.pack_a({from, a_.row_stride, a_.column_stride}, sizes.rows, depth, strips);
      kernels_.multiply(strips, panels + columns.begin * depth, sizes, out_ + row * out_stride_ + column, out_stride_,
                        EpilogueAt(k, row, column));
    }
  }

  /// What is added once is added with the last block of k; before that, blocks add up.
  Epilogue<T> EpilogueAt(Range k, int64_t row, int64_t column) const {
    Epilogue<T> epilogue;
    if (k.end >= sizes_.inner) epilogue = epilogue_;
    if (epilogue.bias) epilogue.bias += column;
    if (epilogue.residual) epilogue.residual += row * epilogue.residual_stride + column;
    epilogue.accumulate = k.begin > 0 || epilogue_.accumulate;
    return epilogue;
  }

  const GemmKernels<T> kernels_;
  const Matrix<T> a_, b_;
  const GemmSizes sizes_;
  T* const out_;
  const int64_t out_stride_;
  const Epilogue<T> epilogue_;

  int64_t row_pieces_, column_pieces_;
  int64_t depth_, columns_, rows_;  // of a block
  T *panels_, *strips_;
};

/// A single row of out, each element of which costs reading a column of b; false if b does not lie so that it fits.
template <typename T>
bool MultiplyRow(const Matrix<T>& a, const Matrix<T>& b, const GemmSizes& sizes, T* out, int64_t out_step,
                 const Epilogue<T>& epilogue, int64_t bias_step, int64_t residual_step, int64_t threads) {
  if (b.column_stride != 1 && !(b.row_stride == 1 && a.column_stride == 1)) return false;
  const auto kernels = NEEDLE_DISPATCH(TableOfGemm<T>)();
  Scratch scratch;
  T* products = scratch.Get<T>(static_cast<size_t>(sizes.columns));
  ParallelFor(sizes.columns, CeilDiv(sizes.columns, threads), [&](int64_t begin, int64_t end) {
    const Matrix<T> mine{b.data + begin * b.column_stride, b.row_stride, b.column_stride};
    kernels.multiply_row(a.data, a.column_stride, mine, sizes.inner, end - begin, products + begin);
    for (int64_t j = begin; j < end; j++) {
      T sum = products[j];
      if (epilogue.accumulate) sum += out[j * out_step];
      if (epilogue.bias) sum += epilogue.bias[j * bias_step];
      if (epilogue.residual) sum += epilogue.residual[j * residual_step];
      out[j * out_step] = epilogue.relu && sum < 0 ? T(0) : sum;
    }
  });
  return true;
}

/// A single row or, seen as the row of the transposed product, a single column.
template <typename T>
bool MultiplyThin(const Matrix<T>& a, const Matrix<T>& b, const GemmSizes& sizes, T* out, int64_t out_stride,
                  const Epilogue<T>& epilogue, int64_t threads) {
  if (sizes.rows == 1) return MultiplyRow(a, b, sizes, out, 1, epilogue, 1, 1, threads);
  if (sizes.columns > 1) return false;
  const Matrix<T> left{b.data, b.column_stride, b.row_stride}, right{a.data, a.column_stride, a.row_stride};
  return MultiplyRow(left, right, {1, sizes.inner, sizes.rows}, out, out_stride, epilogue, 0, epilogue.residual_stride,
                     threads);
}

template <typename T>
void Multiply(const Matrix<T>& a, const Matrix<T>& b, const GemmSizes& sizes, T* out, int64_t out_stride,
              const Epilogue<T>& epilogue, int64_t threads) {
  if (sizes.rows <= 0 || sizes.columns <= 0) return;
  if (MultiplyThin(a, b, sizes, out, out_stride, epilogue, threads)) return;
  Product<T>(a, b, sizes, out, out_stride, epilogue, threads).Run();
}

}  // namespace

template <typename T>
void Gemm(const Matrix<T>& a, const Matrix<T>& b, const GemmSizes& sizes, T* out, int64_t out_stride,
          const Epilogue<T>& epilogue) {
  const int64_t worth = 1 + sizes.rows * sizes.inner / 64 * sizes.columns / (kThreadWork / 64);
  Multiply(a, b, sizes, out, out_stride, epilogue, std::min<int64_t>(NumThreads(), worth));
}

template <typename T>
void SerialGemm(const Matrix<T>& a, const Matrix<T>& b, const GemmSizes& sizes, T* out, int64_t out_stride,
                const Epilogue<T>& epilogue) {
  Multiply(a, b, sizes, out, out_stride, epilogue, 1);
}

#define NEEDLE_INSTANTIATE(T)                                                                                   \
  template void Gemm<T>(const Matrix<T>&, const Matrix<T>&, const GemmSizes&, T*, int64_t, const Epilogue<T>&); \
  template void SerialGemm<T>(const Matrix<T>&, const Matrix<T>&, const GemmSizes&, T*, int64_t, const Epilogue<T>&);
NEEDLE_INSTANTIATE(float)
NEEDLE_INSTANTIATE(double)

}  // namespace needle
