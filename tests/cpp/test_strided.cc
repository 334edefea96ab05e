// Copies between storage and views, against one walk that looks up every index by itself.
#include "check.h"
#include "kernels/parallel.h"
#include "kernels/strided.h"

using namespace needle;

struct ViewCase {
  Dims shape, strides;
  int64_t offset;
};

// of a storage of 120 elements
static const std::vector<ViewCase> kViews = {
    {{}, {}, 7},                                    // rank 0
    {{120}, {1}, 0},                                // all of it
    {{4, 5, 6}, {30, 6, 1}, 0},                     // compact
    {{6, 5, 4}, {1, 6, 30}, 0},                     // transposed
    {{2, 3, 2}, {60, 12, 3}, 4},                    // stepped
    {{4, 5, 6}, {-30, -6, -1}, 119},                // reversed
    {{3, 4, 6}, {0, 6, 1}, 10},                     // broadcast
    {{5, 3}, {1, 1}, 2},                            // windows that overlap
    {{1, 6, 1, 20}, {999, 20, -999, 1}, 0},         // axes of extent 1 lead nowhere
    {{2, 0, 3}, {5, 5, 5}, 500},                    // nothing
    {{2, 2, 2, 2, 2, 2}, {1, 2, 4, 8, 16, 32}, 3},  // many axes
};

/// Positions of a view's elements, from the digits of their numbers.
static std::vector<int64_t> Positions(const ViewCase& view) {
  int64_t size = 1;
  for (int64_t extent : view.shape) size *= extent;
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < size; i++) {
    int64_t position = view.offset, rest = i;
    for (size_t axis = view.shape.size(); axis-- > 0; rest /= view.shape[axis]) {
      if (view.shape[axis] > 1) position += rest % view.shape[axis] * view.strides[axis];
    }
    positions.push_back(position);
  }
  return positions;
}

template <typename T>
static void ExpectCopies(const ViewCase& view) {
  const std::vector<int64_t> positions = Positions(view);
  std::vector<T> storage = SmallNumbers<T>(120, 5), compact(positions.size()), wanted = storage;
  Buffer all = View(storage), part = View(compact);

  Compact(all, part, view.shape, view.strides, view.offset);
  for (size_t i = 0; i < positions.size(); i++) EXPECT(compact[i] == storage[positions[i]]);

  const std::vector<T> fresh = SmallNumbers<T>(part.size(), 6);
  for (size_t i = 0; i < positions.size(); i++) wanted[positions[i]] = compact[i] = fresh[i];
  EwiseSetitem(part, all, view.shape, view.strides, view.offset);
  EXPECT(storage == wanted);

  for (int64_t position : positions) wanted[position] = T(3);
  ScalarSetitem(part.size(), Scalar(int64_t{3}), all, view.shape, view.strides, view.offset);
  EXPECT(storage == wanted);
}

TEST(strided_copies_equal_a_walk_over_every_index) {
  for (const ViewCase& view : kViews) {
    ExpectCopies<float>(view);
    ExpectCopies<int64_t>(view);
    ExpectCopies<uint8_t>(view);
  }
}

TEST(strided_copy_of_a_large_transpose_on_several_threads) {
  SetNumThreads(4);
  const int64_t rows = 511, columns = 257;
  std::vector<float> a(rows * columns), out(a.size());
  for (size_t i = 0; i < a.size(); i++) a[i] = static_cast<float>(i);
  Buffer from = View(a), to = View(out);
  Compact(from, to, {columns, rows}, {1, columns}, 0);
  SetNumThreads(1);
  int64_t wrong = 0;
  for (int64_t i = 0; i < rows; i++) {
    for (int64_t j = 0; j < columns; j++) wrong += out[j * rows + i] != a[i * columns + j];
  }
  EXPECT(wrong == 0);
}

TEST(strided_setitem_from_its_own_storage_reads_before_it_writes) {
  std::vector<float> values = {1, 2, 3};
  Buffer x = View(values);
  EwiseSetitem(x, x, {3}, {-1}, 2);
  EXPECT((values == std::vector<float>{3, 2, 1}));
}

TEST(strided_views_outside_the_storage_are_refused) {
  Buffer storage(10, DType::kFloat32), out(4, DType::kFloat32);
  const int64_t huge = INT64_MAX;
  const std::vector<ViewCase> outside = {
      {{4}, {1}, 7},          {{4}, {1}, -1},    {{4}, {-1}, 2},         {{4}, {3}, 1},    {{2, 2}, {huge, huge}, 0},
      {{4}, {huge}, 0},       {{2, 2}, {1}, 0},  {{4}, {-huge - 1}, 0},  {{4}, {1}, huge}, {{-2, -2}, {1, 1}, 0},
      {{huge, 4}, {0, 0}, 0}, {{4}, {1}, -huge}, {{2, huge}, {1, 1}, 0}, {{5}, {1}, 0},
  };
  for (const ViewCase& view : outside) {
    EXPECT_THROW(std::invalid_argument, Compact(storage, out, view.shape, view.strides, view.offset));
    EXPECT_THROW(std::invalid_argument, EwiseSetitem(out, storage, view.shape, view.strides, view.offset));
    EXPECT_THROW(std::invalid_argument, ScalarSetitem(4, Scalar(1.0), storage, view.shape, view.strides, view.offset));
  }
}

TEST(buffer_refuses_negative_and_impossible_sizes) {
  EXPECT_THROW(std::invalid_argument, Buffer(-1, DType::kFloat32));
  EXPECT_THROW(std::bad_alloc, Buffer(INT64_MAX, DType::kFloat64));
  const int64_t before = AllocatedBytes();
  {
    Buffer kept(16, DType::kInt32);
    EXPECT(AllocatedBytes() == before + 64);
    EXPECT(reinterpret_cast<uintptr_t>(kept.data()) % 64 == 0);
  }
  EXPECT(AllocatedBytes() == before);
}
