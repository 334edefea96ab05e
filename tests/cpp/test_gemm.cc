// The micro-kernel of every instruction set that this machine has, against the three plain loops.
#include <algorithm>

#include "check.h"
#include "kernels/gemm.h"
#include "kernels/matmul.h"
#include "kernels/parallel.h"

using namespace needle;

template <typename T>
static std::vector<T> Naive(const std::vector<T>& a, const std::vector<T>& b, int64_t m, int64_t n, int64_t p) {
  std::vector<T> out(static_cast<size_t>(m * p), T(0));
  for (int64_t i = 0; i < m; i++) {
    for (int64_t j = 0; j < p; j++) {
      for (int64_t k = 0; k < n; k++) out[i * p + j] += a[i * n + k] * b[k * p + j];
    }
  }
  return out;
}

template <typename T>
static void ExpectProduct(int64_t m, int64_t n, int64_t p) {
  const std::vector<T> a = SmallNumbers<T>(m * n, 1), b = SmallNumbers<T>(n * p, 2);
  const std::vector<T> wanted = Naive(a, b, m, n, p);
  for (Isa isa : AvailableIsas()) {
    SetIsa(Name(isa));
    std::vector<T> out(wanted.size(), T(99));  // what was there before must not count
    Gemm<T>({a.data(), n, 1}, {b.data(), p, 1}, {m, n, p}, out.data(), p);
    EXPECT(out == wanted);
  }
  SetIsa(Name(AvailableIsas().front()));
}

// sums of small whole numbers are exact, so that any order of adding gives the same bits
TEST(gemm_equals_the_plain_loops_at_every_edge) {
  for (int64_t m : {1, 5, 6, 12, 13, 25}) {
    for (int64_t p : {1, 7, 16, 33, 65, 300}) {
      for (int64_t n : {1, 2, 31}) {
        ExpectProduct<float>(m, n, p);
        ExpectProduct<double>(m, n, p);
      }
    }
  }
}

TEST(gemm_equals_the_plain_loops_with_few_rows_or_columns) {
  SetNumThreads(3);
  for (int64_t few = 1; few <= 10; few++) {
    for (int64_t n : {1, 17, 127, 128, 150}) {
      ExpectProduct<float>(few, n, 45);
      ExpectProduct<float>(45, n, few);
      ExpectProduct<double>(45, n, few);
    }
  }
  SetNumThreads(1);
}

TEST(gemm_equals_the_plain_loops_past_every_block_size) {
  SetNumThreads(3);
  ExpectProduct<float>(300, 400, 50);  // several blocks of rows, and of depth
  ExpectProduct<float>(7, 800, 3100);  // several blocks of columns, shared by columns
  ExpectProduct<double>(150, 390, 40);
  ExpectProduct<float>(20, 2700, 130);  // long sums, in parts
  ExpectProduct<double>(70, 900, 9);    // whose rows are shared
  SetNumThreads(1);
}

/// Every epilogue at once, out's rows farther apart than they are long, a transposed, on threads or on one.
template <typename T>
static void ExpectEpilogueFor(int64_t m, int64_t n, int64_t p, int64_t b_row, int64_t b_column, bool serial) {
  const std::vector<T> at = SmallNumbers<T>(n * m, 5), b = SmallNumbers<T>(n * b_row + p * b_column, 6),
                       bias = SmallNumbers<T>(p, 7), residual = SmallNumbers<T>(m * (p + 2), 8),
                       before = SmallNumbers<T>(m * (p + 1), 9);
  std::vector<T> out = before;
  const Epilogue<T> epilogue{true, bias.data(), residual.data(), p + 2, true};
  (serial ? SerialGemm<T> : Gemm<T>)({at.data(), 1, m}, {b.data(), b_row, b_column}, {m, n, p}, out.data(), p + 1,
                                     epilogue);
  for (int64_t i = 0; i < m; i++) {
    for (int64_t j = 0; j < p; j++) {
      T sum = before[i * (p + 1) + j] + bias[j] + residual[i * (p + 2) + j];
      for (int64_t k = 0; k < n; k++) sum += at[k * m + i] * b[k * b_row + j * b_column];
      EXPECT(out[i * (p + 1) + j] == (sum > 0 ? sum : 0));
    }
    EXPECT(out[i * (p + 1) + p] == before[i * (p + 1) + p]);  // what lies between the rows is not out's
  }
}

/// b as it is usual, transposed, and every second element of every second row.
template <typename T>
static void ExpectEpilogue(int64_t m, int64_t n, int64_t p, bool serial) {
  ExpectEpilogueFor<T>(m, n, p, p, 1, serial);
  ExpectEpilogueFor<T>(m, n, p, 1, n, serial);
  ExpectEpilogueFor<T>(m, n, p, 4 * p, 2, serial);
}

TEST(gemm_adds_what_is_there_bias_and_residual_and_cuts_below_0) {
  SetNumThreads(3);
  for (Isa isa : AvailableIsas()) {
    SetIsa(Name(isa));
    for (int64_t n : {0, 3, 300, 2100}) {
      ExpectEpilogue<float>(13, n, 35, n == 3);
      ExpectEpilogue<double>(150, n, 17, n == 3);
      for (int64_t size : {1, 5, 40, 300}) {
        ExpectEpilogue<float>(1, n, size, n == 3);
        ExpectEpilogue<float>(size, n, 1, n == 3);
        ExpectEpilogue<double>(size, n, 1, n == 3);
        ExpectEpilogue<double>(4, n, size, n == 3);
        ExpectEpilogue<float>(size, n, 7, n == 3);
      }
    }
  }
  SetIsa(Name(AvailableIsas().front()));
  SetNumThreads(1);
}

TEST(gemm_leaves_a_nan_through_relu) {
  const float a[] = {std::nanf(""), -1};
  Epilogue<float> epilogue;
  epilogue.relu = true;
  for (int64_t p : {1, 5, 35}) {  // an inner product, part of a vector, whole tiles and a rest
    const std::vector<float> b(static_cast<size_t>(p), 1.0f);
    std::vector<float> out(static_cast<size_t>(2 * p));
    Gemm<float>({a, 1, 1}, {b.data(), p, 1}, {2, 1, p}, out.data(), p, epilogue);
    for (int64_t j = 0; j < p; j++) EXPECT(std::isnan(out[j]) && out[p + j] == 0);
  }
}

TEST(gemm_inside_a_loop_over_threads_is_serial) {
  SetNumThreads(3);
  const int64_t n = 130;
  const std::vector<float> a = SmallNumbers<float>(n * n, 1), b = SmallNumbers<float>(n * n, 2);
  std::vector<float> out(6 * n * n);
  ParallelFor(6, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++)
      Gemm<float>({a.data(), n, 1}, {b.data(), n, 1}, {n, n, n}, &out[i * n * n], n);
  });
  const std::vector<float> wanted = Naive(a, b, n, n, n);
  for (int64_t i = 0; i < 6; i++) EXPECT(std::equal(wanted.begin(), wanted.end(), out.begin() + i * n * n));
  SetNumThreads(1);
}

TEST(gemm_of_no_inner_elements_is_zero) {
  std::vector<float> nothing, out(6, 9.0f);
  Gemm<float>({nothing.data(), 0, 1}, {nothing.data(), 3, 1}, {2, 0, 3}, out.data(), 3);
  EXPECT(out == std::vector<float>(6, 0.0f));
}

template <typename T>
static void ExpectBatch(int64_t a_stride, int64_t b_stride) {
  const int64_t batch = 3, m = 2, n = 5, p = 4;
  std::vector<T> a = SmallNumbers<T>(batch * m * n, 3), b = SmallNumbers<T>(batch * n * p, 4), out(batch * m * p);
  Buffer left = View(a), right = View(b), product = View(out);
  MatmulBatched(left, right, product, batch, m, n, p, a_stride, b_stride);
  for (int64_t i = 0; i < batch; i++) {
    const std::vector<T> ai(a.begin() + i * a_stride, a.end()), bi(b.begin() + i * b_stride, b.end());
    EXPECT(std::vector<T>(out.begin() + i * m * p, out.begin() + (i + 1) * m * p) == Naive(ai, bi, m, n, p));
  }
}

TEST(matmul_batched_reuses_a_matrix_of_stride_0) {
  ExpectBatch<float>(10, 20);
  ExpectBatch<double>(0, 20);
  ExpectBatch<int64_t>(10, 0);
  ExpectBatch<uint8_t>(0, 0);
}

TEST(matmul_refuses_sizes_that_do_not_fit) {
  Buffer a(6, DType::kFloat32), b(6, DType::kFloat32), out(4, DType::kFloat32), wrong(4, DType::kFloat64);
  EXPECT_THROW(std::invalid_argument, Matmul(a, b, out, 2, 3, 3));
  EXPECT_THROW(std::invalid_argument, Matmul(a, b, out, -2, -3, 2));
  EXPECT_THROW(std::invalid_argument, Matmul(a, b, out, int64_t{1} << 62, int64_t{1} << 62, 2));
  EXPECT_THROW(std::invalid_argument, Matmul(a, a, a, 2, 3, 2));
  EXPECT_THROW(TypeError, Matmul(a, b, wrong, 2, 3, 2));
}
