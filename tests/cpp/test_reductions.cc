// Reductions of runs of any length against plain loops, and the rounding error of long sums.
#include <limits>

#include "check.h"
#include "kernels/arithmetic.h"
#include "kernels/isa.h"
#include "kernels/parallel.h"
#include "kernels/reductions.h"

using namespace needle;

template <typename T, typename Step>
static void ExpectFold(void (*reduce)(const Buffer&, Buffer&, int64_t), int64_t runs, int64_t length, T first,
                       const Step& step) {
  std::vector<T> a = SmallNumbers<T>(runs * length, 7), out(static_cast<size_t>(runs));
  Buffer in = View(a), result = View(out);
  reduce(in, result, length);
  for (int64_t i = 0; i < runs; i++) {
    T wanted = first;
    for (int64_t k = 0; k < length; k++) wanted = step(wanted, a[i * length + k]);
    EXPECT(out[i] == wanted);
  }
}

template <typename T>
static void ExpectAllFolds(int64_t runs, int64_t length) {
  ExpectFold<T>(ReduceSum, runs, length, T(0), Add<T>);
  ExpectFold<T>(ReduceMax, runs, length, std::numeric_limits<T>::lowest(), Maximum<T>);
  ExpectFold<T>(ReduceMin, runs, length, std::numeric_limits<T>::max(), Minimum<T>);
}

TEST(reductions_equal_plain_loops_for_every_length) {
  for (int64_t length : {1, 2, 31, 32, 33, 63, 100, 511, 512, 513, 1025, 2000}) {
    ExpectAllFolds<float>(3, length);
    ExpectAllFolds<int32_t>(3, length);
    ExpectAllFolds<uint8_t>(2, length);
  }
  ExpectFold<int64_t>(ReduceProd, 4, 9, 1, Multiply<int64_t>);
}

template <typename T, typename Step>
static void ExpectFoldOfColumns(decltype(&ViewReduceSum) reduce, int64_t rows, int64_t cols, int64_t row_stride,
                                const Step& step) {
  std::vector<T> a = SmallNumbers<T>(rows * row_stride, 7), out(static_cast<size_t>(cols));
  Buffer in = View(a), result = View(out);
  reduce(in, result, {cols, rows}, {1, row_stride}, 0, 1);
  for (int64_t j = 0; j < cols; j++) {
    T wanted = a[j];
    for (int64_t k = 1; k < rows; k++) wanted = step(wanted, a[k * row_stride + j]);
    EXPECT(out[j] == wanted);
  }
}

TEST(reductions_of_columns_equal_plain_loops) {
  // few columns, without and with gaps between rows; wide rows; rows in pieces; rows cut into strips
  const int64_t shapes[][3] = {{2, 3, 3},       {40, 5, 5},        {1000, 7, 7},     {50, 7, 9},
                               {100, 128, 130}, {37, 200, 200},    {37, 200, 301},   {23, 2500, 2600},
                               {4, 2500, 2500}, {300, 1001, 1001}, {2000, 100, 103}, {17, 9001, 9001}};
  for (const auto& [rows, cols, row_stride] : shapes) {
    ExpectFoldOfColumns<float>(ViewReduceSum, rows, cols, row_stride, Add<float>);
    ExpectFoldOfColumns<float>(ViewReduceMax, rows, cols, row_stride, Maximum<float>);
    ExpectFoldOfColumns<double>(ViewReduceMin, rows, cols, row_stride, Minimum<double>);
  }
}

TEST(reductions_of_columns_do_not_depend_on_the_number_of_threads) {
  for (Isa isa : AvailableIsas()) {
    SetIsa(Name(isa));
    for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{24, 8200}, {24, 9236}, {3000, 130}, {157, 2100}}) {
      std::vector<float> a(static_cast<size_t>(rows * cols)), one(static_cast<size_t>(cols)), more(one);
      for (size_t i = 0; i < a.size(); i++) a[i] = 1.0f / static_cast<float>(i % 1000 + 1);
      Buffer in = View(a), first = View(one), second = View(more);
      SetNumThreads(1);
      ViewReduceSum(in, first, {cols, rows}, {1, cols}, 0, 1);
      for (int64_t threads : {2, 3}) {
        SetNumThreads(threads);
        ViewReduceSum(in, second, {cols, rows}, {1, cols}, 0, 1);
        EXPECT(one == more);
      }
    }
  }
  SetIsa(Name(AvailableIsas().front()));
  SetNumThreads(1);
}

TEST(reductions_of_long_runs_do_not_depend_on_the_number_of_threads) {
  std::vector<float> a(300001), one(1), three(1);
  for (size_t i = 0; i < a.size(); i++) a[i] = 1.0f / static_cast<float>(i + 1);
  Buffer in = View(a), first = View(one), second = View(three);
  SetNumThreads(1);
  ReduceSum(in, first, in.size());
  SetNumThreads(3);
  ReduceSum(in, second, in.size());
  SetNumThreads(1);
  EXPECT(one == three);
}

// Higham's bound for adding in a tree of blocks: depth * eps * sum|a|; one after another it would be 10^6 * eps
TEST(reductions_sum_a_million_floats_to_single_precision) {
  std::vector<float> a(1000000, 0.1f), out(1);
  Buffer in = View(a), result = View(out);
  ReduceSum(in, result, in.size());
  const double wanted = 1e6 * static_cast<double>(0.1f);
  EXPECT(std::abs(out[0] - wanted) < 40 * std::numeric_limits<float>::epsilon() * wanted);
}

TEST(reductions_nan_wins_wherever_it_stands) {
  for (size_t where : {0, 5, 40, 99}) {
    std::vector<float> a(100, 1.0f), out(1);
    std::vector<int64_t> position(1);
    a[where] = std::numeric_limits<float>::quiet_NaN();
    a[99] = where == 99 ? a[99] : 9.0f;
    Buffer in = View(a), result = View(out), index = View(position);
    ReduceMax(in, result, 100);
    EXPECT(std::isnan(out[0]));
    ReduceMin(in, result, 100);
    EXPECT(std::isnan(out[0]));
    ReduceArgmax(in, index, 100);
    EXPECT(position[0] == static_cast<int64_t>(where));
  }
}

TEST(reductions_of_empty_runs_have_identities_or_are_refused) {
  Buffer nothing(0, DType::kFloat32), index(2, DType::kInt64);
  std::vector<float> out = {5, 5};
  Buffer result = View(out);
  ReduceSum(nothing, result, 0);
  EXPECT((out == std::vector<float>{0, 0}));
  ReduceProd(nothing, result, 0);
  EXPECT((out == std::vector<float>{1, 1}));
  EXPECT_THROW(std::invalid_argument, ReduceMax(nothing, result, 0));
  EXPECT_THROW(std::invalid_argument, ReduceArgmin(nothing, index, 0));
  EXPECT_THROW(std::invalid_argument, ReduceSum(nothing, result, -1));
}

TEST(reductions_argmax_takes_the_first_of_equals) {
  std::vector<int32_t> a = {1, 3, 3, 2, -1, -1};
  std::vector<int64_t> out(2);
  Buffer in = View(a), result = View(out);
  ReduceArgmax(in, result, 3);
  EXPECT((out == std::vector<int64_t>{1, 0}));
  ReduceArgmin(in, result, 3);
  EXPECT((out == std::vector<int64_t>{0, 1}));
}
