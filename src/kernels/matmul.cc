#include "matmul.h"

#include <algorithm>

#include "arithmetic.h"
#include "gemm.h"
#include "parallel.h"

namespace needle {
namespace {

constexpr int64_t kGrain = 1 << 16;     // multiplications
constexpr int64_t kSmallGemm = 1 << 8;  // fewer are done before a matrix is packed

/// Rows [begin, end) of a product.
template <typename T>
void PlainRows(const Matrix<T>& a, const Matrix<T>& b, const GemmSizes& sizes, T* out, int64_t begin, int64_t end) {
  const int64_t p = sizes.columns, step = b.column_stride;
  std::fill(out + begin * p, out + end * p, T(0));
  for (int64_t i = begin; i < end; i++) {
    for (int64_t k = 0; k < sizes.inner; k++) {
      const T left = a.data[i * a.row_stride + k * a.column_stride];
      const T* right = b.data + k * b.row_stride;
      if (step == 1) {
        for (int64_t j = 0; j < p; j++) out[i * p + j] = Add(out[i * p + j], Multiply(left, right[j]));
      } else {
        for (int64_t j = 0; j < p; j++) out[i * p + j] = Add(out[i * p + j], Multiply(left, right[j * step]));
      }
    }
  }
}

template <typename T>
void PlainProduct(const Matrix<T>& a, const Matrix<T>& b, const GemmSizes& sizes, T* out) {
  ParallelFor(sizes.rows, 1 + kGrain / std::max<int64_t>(1, sizes.inner * sizes.columns),
              [&](int64_t begin, int64_t end) { PlainRows(a, b, sizes, out, begin, end); });
}

/// The fast product where there is one.
template <typename T>
void OneMatmul(const Matrix<T>& a, const Matrix<T>& b, const GemmSizes& sizes, T* out) {
  if constexpr (kIsFloat<T>) {
    if (sizes.rows * sizes.inner * sizes.columns > kSmallGemm) return Gemm(a, b, sizes, out, sizes.columns);
  }
  PlainProduct(a, b, sizes, out);
}

// ---- batches --------------------------------------------------------------------------------------------------------

/// A batch of products: the sizes of one, the axes in front, and the strides of both operands.
struct Batch {
  Dims axes, a_strides, b_strides;  // of the axes in front; then rows and columns of a and b
  GemmSizes sizes;
  int64_t a_row, a_column, b_row, b_column;

  /// Where the i-th matrix begins.
  static int64_t Begin(const Dims& axes, const Dims& strides, int64_t i) {
    int64_t begin = 0;
    for (size_t axis = axes.size(); axis-- > 0; i /= axes[axis]) begin += i % axes[axis] * strides[axis];
    return begin;
  }

  bool RowsLieEvenly() const { return sizes.rows == 1 || a_strides.back() == sizes.rows * a_row; }

  /// All rows that meet one matrix b are one product, if they lie evenly.
  void MergeRows() {
    while (!axes.empty() && (axes.back() == 1 || (b_strides.back() == 0 && RowsLieEvenly()))) {
      if (axes.back() > 1 && sizes.rows == 1) a_row = a_strides.back();
      sizes.rows *= axes.back();
      axes.pop_back(), a_strides.pop_back(), b_strides.pop_back();
    }
  }
};

Batch CheckedBatch(const Buffer& a, const Buffer& b, const Buffer& out, Dims shape, const Dims& a_strides,
                   int64_t a_offset, const Dims& b_strides, int64_t b_offset) {
  const char* who = "matmul_strided";
  if (shape.size() < 3) Refuse(who, "shape " + Text(shape) + ", wanted (…, m, n, p)");
  const int64_t p = shape.back(), n = shape[shape.size() - 2];
  shape.pop_back();
  const Dims left = CheckedStrides(who, shape, a_strides, a_offset, a.size());
  const int64_t m = shape[shape.size() - 2];
  shape[shape.size() - 2] = n, shape.back() = p;
  const Dims right = CheckedStrides(who, shape, b_strides, b_offset, b.size());
  shape[shape.size() - 2] = m;
  CheckDType(who, "b", b, a.dtype());
  CheckBuffer(who, "out", out, CheckedSize(who, shape), a.dtype());
  CheckApart(who, a, out);
  CheckApart(who, b, out);

  const auto front = [](const Dims& dims) { return Dims(dims.begin(), dims.end() - 2); };
  const size_t row = left.size() - 2, column = left.size() - 1;
  return {front(shape), front(left), front(right), {m, n, p}, left[row], left[column], right[row], right[column]};
}

/// Threads share the batch if it is long enough, then the rows of each product, and else work on one at a time.
template <typename T>
void MultiplyBatch(const T* a, const T* b, T* out, const Batch& batch) {
  const GemmSizes& sizes = batch.sizes;
  const auto multiply = [&](int64_t i) {
    OneMatmul<T>({a + Batch::Begin(batch.axes, batch.a_strides, i), batch.a_row, batch.a_column},
                 {b + Batch::Begin(batch.axes, batch.b_strides, i), batch.b_row, batch.b_column}, sizes,
                 out + i * sizes.rows * sizes.columns);
  };
  int64_t count = 1;
  for (int64_t extent : batch.axes) count *= extent;
  const int64_t grain = 1 + kGrain / std::max<int64_t>(1, sizes.rows * sizes.inner * sizes.columns);
  const bool share = count % NumThreads() == 0 || count >= 4 * NumThreads();
  ParallelFor(count, share ? grain : count, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) multiply(i);
  });
}

}  // namespace

template <typename T>
void PlainMatmul(const T* a, const T* b, T* out, int64_t m, int64_t n, int64_t p) {
  PlainProduct<T>({a, n, 1}, {b, p, 1}, {m, n, p}, out);
}

void MatmulStrided(const Buffer& a, const Buffer& b, Buffer& out, const Dims& shape, const Dims& a_strides,
                   int64_t a_offset, const Dims& b_strides, int64_t b_offset) {
  Batch batch = CheckedBatch(a, b, out, shape, a_strides, a_offset, b_strides, b_offset);
  if (out.size() == 0) return;
  const bool empty = batch.sizes.inner == 0;  // then the offsets may be anything
  batch.MergeRows();
  Visit(a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    MultiplyBatch(a.as<T>() + (empty ? 0 : a_offset), b.as<T>() + (empty ? 0 : b_offset), out.as<T>(), batch);
  });
}

void MatmulBatched(const Buffer& a, const Buffer& b, Buffer& out, int64_t batch, int64_t m, int64_t n, int64_t p,
                   int64_t a_stride, int64_t b_stride) {
  const BatchSteps steps = CheckedBatch(a, b, out, batch, m, n, p, a_stride, b_stride);
  MatmulStrided(a, b, out, {batch, m, n, p}, {steps.a, n, 1}, 0, {steps.b, p, 1}, 0);
}

void Linear(const Buffer& a, const Buffer& b, const Buffer& bias, Buffer& out, const Dims& shape, const Dims& a_strides,
            int64_t a_offset, const Dims& b_strides, int64_t b_offset) {
  if (shape.size() != 3) Refuse("linear", "shape " + Text(shape) + ", wanted (m, n, p)");
  const Batch one = CheckedBatch(a, b, out, shape, a_strides, a_offset, b_strides, b_offset);
  CheckBuffer("linear", "bias", bias, shape[2], a.dtype());
  CheckApart("linear", bias, out);
  if (out.size() == 0) return;
  VisitOnly<FloatType>("linear", a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const bool empty = one.sizes.inner == 0;
    Epilogue<T> epilogue;
    epilogue.bias = bias.as<T>();
    Gemm<T>({a.as<T>() + (empty ? 0 : a_offset), one.a_row, one.a_column},
            {b.as<T>() + (empty ? 0 : b_offset), one.b_row, one.b_column}, one.sizes, out.as<T>(), shape[2], epilogue);
  });
}

#define NEEDLE_INSTANTIATE(number, T, name) \
  template void PlainMatmul<T>(const T*, const T*, T*, int64_t, int64_t, int64_t);
NEEDLE_DTYPES(NEEDLE_INSTANTIATE)

}  // namespace needle
