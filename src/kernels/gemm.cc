#include "gemm.h"

#include <algorithm>
#include <utility>

#include "parallel.h"
#include "rounding.h"
#include "scratch.h"

namespace needle {
namespace {

// Blocks: depth x tile of b (a panel) stays in the first-level cache, rows x depth of a in the second, depth x columns
// of b in the third.
constexpr int64_t kDepthBytes = 2048;
constexpr int64_t kSmallOut = 1 << 16;  // elements; to so few it costs nothing to add twice as often, in half the room
constexpr int64_t kRows = 192;
constexpr int64_t kColumns = 1024;
constexpr int64_t kRowsInPlace = 24;      // so few of a, and packing b costs more than reading it where it lies
constexpr int64_t kLongSum = 128;         // products of which it pays to keep a vector of sums for each element of out
constexpr int64_t kRowGrain = 2;          // threads share rows evenly, in place of whole strips
constexpr int64_t kMostParts = 1 << 18;   // elements of sums that wait to be added up
constexpr int64_t kStart = 10000;         // half clock cycles until threads are at work
constexpr int64_t kLine = 16;             // elements: no two threads write to one cache line
constexpr int64_t kThreadWork = 1 << 19;  // multiplications that are worth a thread

/// The largest size of a block, when `length` is cut into equal ones that are multiples of `tile`.
int64_t EqualBlocks(int64_t length, int64_t block, int64_t tile) {
  return RoundUp(CeilDiv(length, std::max<int64_t>(1, CeilDiv(length, block))), tile);
}

/// A sum on its way into out, but for what is accumulated.
template <typename T>
T Finished(T sum, const Epilogue<T>& epilogue, int64_t bias, int64_t residual) {
  if (epilogue.bias) sum += epilogue.bias[bias];
  if (epilogue.residual) sum += epilogue.residual[residual];
  return epilogue.relu && sum < 0 ? T(0) : sum;
}

struct Range {
  int64_t begin, end;
};

/// The part of [0, length) that is `piece` of `pieces`, in whole tiles.
Range PieceOf(int64_t length, int64_t piece, int64_t pieces, int64_t tile) {
  const int64_t tiles = CeilDiv(length, tile);
  return {std::min(length, tiles * piece / pieces * tile), std::min(length, tiles * (piece + 1) / pieces * tile)};
}

/// How many pieces a product is cut into: of its rows, its columns, and its sums.
struct Grid {
  int64_t rows, columns, depth;

  int64_t pieces() const { return rows * columns * depth; }
};

/// One product, cut into blocks, and into pieces for as many threads.  No thread packs for another: waiting for it, and
/// fetching what it wrote from its cache, costs more than packing twice.
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
    const int64_t bytes = sizes.rows * sizes.columns <= kSmallOut ? kDepthBytes / 2 : kDepthBytes;
    depth_ = std::max<int64_t>(1, EqualBlocks(sizes.inner, bytes / static_cast<int64_t>(sizeof(T)), 1));
    blocks_ = std::max<int64_t>(1, CeilDiv(sizes.inner, depth_));
    Share(threads);
    direct_ = PieceOf(blocks_, 0, grid_.depth, 1).end;
    rows_ = EqualBlocks(CeilDiv(sizes.rows, grid_.rows), kRows, kernels_.tile_rows);
    columns_ = EqualBlocks(CeilDiv(sizes.columns, grid_.columns), kColumns, kernels_.tile_columns);
    in_place_ = b.column_stride == 1 && CeilDiv(sizes.rows, grid_.rows) <= kRowsInPlace;
    packed_ = in_place_ ? kernels_.tile_columns : columns_;
  }

  void Run() {
    Scratch scratch;
    const int64_t parts = (blocks_ - direct_) * sizes_.rows * sizes_.columns;
    room_ = RoundUp((packed_ + rows_) * depth_, kLine);
    rooms_ = scratch.Get<T>(static_cast<size_t>(grid_.pieces() * room_ + parts));
    parts_ = rooms_ + grid_.pieces() * room_;
    ParallelFor(grid_.pieces(), 1, [this](int64_t begin, int64_t end) {
      for (int64_t piece = begin; piece < end; piece++) Work(piece, rooms_ + begin * room_);
    });
    if (parts == 0) return;
    ParallelFor(sizes_.rows, sizes_.rows / grid_.pieces(),
                [this](int64_t begin, int64_t end) { AddParts({begin, end}); });
  }

 private:
  // ---- the grid -----------------------------------------------------------------------------------------------------

  /// The grid whose pieces take the least time; of equal ones that with the most pieces of rows.
  void Share(int64_t threads) {
    int64_t least = 0;
    for (int64_t rows = threads; rows >= 1; rows--) {
      for (int64_t depth = 1; depth <= std::min(blocks_, threads / rows); depth++) {
        const Grid grid{rows, threads / rows / depth, depth};
        if (depth > 1 && sizes_.rows * sizes_.columns * blocks_ > kMostParts) break;
        const int64_t cost = Cost(grid);
        if (least && cost >= least) continue;
        least = cost, grid_ = grid;
      }
    }
  }

  /// Of the largest piece, in half clock cycles of a processor that multiplies a vector in one: multiplying half
  /// vectors of each row, beginning each strip, packing; then adding up parts, once all are there.
  int64_t Cost(const Grid& grid) const {
    const int64_t tile = kernels_.tile_columns, tiles = CeilDiv(sizes_.columns, tile);
    const int64_t rows = CeilDiv(sizes_.rows, grid.rows), strips = CeilDiv(rows, kernels_.tile_rows);
    const int64_t columns = std::min(sizes_.columns, CeilDiv(tiles, grid.columns) * tile);
    const int64_t a_step = (rows + 2 * strips) * CeilDiv(4 * columns, tile) + rows + columns;
    const int64_t cost = a_step * std::min(sizes_.inner, CeilDiv(blocks_, grid.depth) * depth_);
    return grid.depth == 1 ? cost : cost + kStart + sizes_.rows * sizes_.columns * blocks_ / grid.pieces();
  }

  // ---- one piece ----------------------------------------------------------------------------------------------------

  void Work(int64_t piece, T* room) const {
    const Range rows = PieceOf(sizes_.rows, piece % grid_.rows, grid_.rows, kRowGrain);
    piece /= grid_.rows;
    const Range columns = PieceOf(sizes_.columns, piece % grid_.columns, grid_.columns, kernels_.tile_columns);
    const Range blocks = PieceOf(blocks_, piece / grid_.columns, grid_.depth, 1);
    for (int64_t column = columns.begin; column < columns.end; column += columns_) {
      for (int64_t block = blocks.begin; block < blocks.end; block++) {
        WorkOnBlock(block, rows, {column, std::min(columns.end, column + columns_)}, room);
      }
    }
  }

  /// rows by rows
  void WorkOnBlock(int64_t block, Range rows, Range columns, T* room) const {
    const int64_t k = block * depth_, depth = std::min(depth_, sizes_.inner - k), count = columns.end - columns.begin;
    const Matrix<T> b{b_.data + k * b_.row_stride + columns.begin * b_.column_stride, b_.row_stride, b_.column_stride};
    const int64_t in_place = in_place_ ? count - count % kernels_.tile_columns : 0;
    T *const panels = room, *const strips = room + packed_ * depth_;
    kernels_.pack_b({b.data + in_place * b.column_stride, b.row_stride, b.column_stride}, depth, count - in_place,
                    panels);
    for (int64_t row = rows.begin; row < rows.end; row += rows_) {
      const GemmSizes sizes{std::min(rows_, rows.end - row), depth, count};
      const T* from = a_.data + row * a_.row_stride + k * a_.column_stride;
      kernels_.pack_a({from, a_.row_stride, a_.column_stride}, sizes.rows, depth, strips);
      MultiplyStrips(block, row, columns.begin, sizes, strips, b, in_place, panels);
    }
  }

  /// The first columns with b where it lies, the others with packed panels.
  void MultiplyStrips(int64_t block, int64_t row, int64_t column, const GemmSizes& sizes, const T* strips,
                      const Matrix<T>& b, int64_t in_place, const T* panels) const {
    const int64_t stride = block < direct_ ? out_stride_ : sizes_.columns;
    T* const matrix = block < direct_ ? out_ : parts_ + (block - direct_) * sizes_.rows * sizes_.columns;
    T* const to = matrix + row * stride + column;
    if (in_place > 0) {
      kernels_.multiply_in_place(strips, b, {sizes.rows, sizes.inner, in_place}, to, stride,
                                 EpilogueAt(block, row, column));
    }
    kernels_.multiply(strips, panels, {sizes.rows, sizes.inner, sizes.columns - in_place}, to + in_place, stride,
                      EpilogueAt(block, row, column + in_place));
  }

  /// What is added once is added with the last block; before that, blocks add up.  Parts are nothing but products.
  Epilogue<T> EpilogueAt(int64_t block, int64_t row, int64_t column) const {
    Epilogue<T> epilogue;
    if (block >= direct_) return epilogue;
    if (block == blocks_ - 1) epilogue = epilogue_;
    if (epilogue.bias) epilogue.bias += column;
    if (epilogue.residual) epilogue.residual += row * epilogue.residual_stride + column;
    epilogue.accumulate = block > 0 || epilogue_.accumulate;
    return epilogue;
  }

  /// To rows of out: the parts, in the order of k, as if one thread had added them while it multiplied.
  void AddParts(Range rows) const {
    for (int64_t i = rows.begin; i < rows.end; i++) {
      T* to = out_ + i * out_stride_;
      for (int64_t part = 0; part < blocks_ - direct_; part++) {
        const T* from = parts_ + (part * sizes_.rows + i) * sizes_.columns;
        for (int64_t j = 0; j < sizes_.columns; j++) to[j] += from[j];
      }
      for (int64_t j = 0; j < sizes_.columns; j++) {
        to[j] = Finished(to[j], epilogue_, j, i * epilogue_.residual_stride + j);
      }
    }
  }

  const GemmKernels<T> kernels_;
  const Matrix<T> a_, b_;
  const GemmSizes sizes_;
  T* const out_;
  const int64_t out_stride_;
  const Epilogue<T> epilogue_;

  int64_t depth_, blocks_;  // of k: how long one is, how many there are
  Grid grid_;
  int64_t rows_, columns_;  // of a block
  int64_t direct_;  // so many blocks add up in out, each of the others has a part of its own, until all are there
  bool in_place_;   // b is not packed, where a panel is full
  int64_t packed_;  // columns of a block that are packed, at most
  int64_t room_;    // of one piece, for its panels and strips
  T *rooms_, *parts_;
};

// ---- few rows or columns --------------------------------------------------------------------------------------------

/// A product of few columns, each element of which is one long sum; or, if `transposed`, the transposed one of few
/// rows.
template <typename T>
class Thin {
 public:
  Thin(const Matrix<T>& a, const Matrix<T>& b, const GemmSizes& sizes, T* out, int64_t out_stride,
       const Epilogue<T>& epilogue, bool transposed)
      : a_(a), b_(b), sizes_(sizes), out_(out), epilogue_(epilogue) {
    row_ = {out_stride, 0, epilogue.residual_stride};
    column_ = {1, 1, 1};
    if (!transposed) return;
    a_ = {b.data, b.column_stride, b.row_stride}, b_ = {a.data, a.column_stride, a.row_stride};
    std::swap(sizes_.rows, sizes_.columns);
    std::swap(row_, column_);
  }

  /// Whether this way is the faster one.
  bool Fits() const {
    if (AddsRows()) return true;
    return a_.column_stride == 1 && (sizes_.columns == 1 || (sizes_.columns <= kMostDots && sizes_.inner >= kLongSum));
  }

  void Run(int64_t threads) {
    Scratch scratch;
    const bool adds_rows = AddsRows();
    T* products = scratch.Get<T>(static_cast<size_t>((sizes_.rows + sizes_.inner) * sizes_.columns));
    if (!adds_rows) GatherColumns(products + sizes_.rows * sizes_.columns);
    const auto kernels = NEEDLE_DISPATCH(TableOfGemm<T>)();
    ParallelFor(sizes_.rows, sizes_.rows / threads, [&](int64_t begin, int64_t end) {
      T* mine = products + begin * sizes_.columns;
      const T* from = a_.data + begin * a_.row_stride;
      if (adds_rows) {
        const Matrix<T> turned{from, a_.column_stride, 1};
        kernels.multiply_row(b_.data, b_.row_stride, turned, sizes_.inner, end - begin, mine);
      } else {
        kernels.multiply_dots({from, a_.row_stride, 1}, b_, {end - begin, sizes_.inner, sizes_.columns}, mine);
      }
      Finish(begin, end, mine);
    });
  }

 private:
  /// A single column, and of a, transposed, the rows lie in one piece each.
  bool AddsRows() const { return sizes_.columns == 1 && a_.row_stride == 1 && a_.column_stride != 1; }

  /// b's columns into one piece each.
  void GatherColumns(T* room) {
    if (b_.row_stride == 1) return;
    for (int64_t k = 0; k < sizes_.inner; k++) {
      for (int64_t j = 0; j < sizes_.columns; j++) {
        room[j * sizes_.inner + k] = b_.data[k * b_.row_stride + j * b_.column_stride];
      }
    }
    b_ = {room, 1, sizes_.inner};
  }

  void Finish(int64_t begin, int64_t end, const T* products) const {
    for (int64_t i = begin; i < end; i++) {
      for (int64_t j = 0; j < sizes_.columns; j++) {
        T& to = out_[i * row_.out + j * column_.out];
        T sum = *products++;
        if (epilogue_.accumulate) sum += to;
        to = Finished(sum, epilogue_, i * row_.bias + j * column_.bias, i * row_.residual + j * column_.residual);
      }
    }
  }

  struct Steps {
    int64_t out, bias, residual;
  };

  Matrix<T> a_, b_;
  GemmSizes sizes_;
  T* const out_;
  const Epilogue<T> epilogue_;
  Steps row_, column_;  // from one to the next
};

/// Whether it was done.
template <typename T>
bool MultiplyThin(const Matrix<T>& a, const Matrix<T>& b, const GemmSizes& sizes, T* out, int64_t out_stride,
                  const Epilogue<T>& epilogue, int64_t threads) {
  for (bool transposed : {false, true}) {
    Thin<T> thin(a, b, sizes, out, out_stride, epilogue, transposed);
    if (!thin.Fits()) continue;
    thin.Run(threads);
    return true;
  }
  return false;
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
