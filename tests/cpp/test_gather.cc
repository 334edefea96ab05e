// take and scatter_add against their definitions, which are also each other's adjoint.
#include "check.h"
#include "kernels/gather.h"

using namespace needle;

static std::vector<int64_t> kIndices = {2, 0, -1, 2, 2, -4};
constexpr int64_t kOuter = 3, kAxis = 4, kInner = 5;
static const int64_t kCount = static_cast<int64_t>(kIndices.size());

/// Calls visit(position in the whole, position in the picked) for every element that is picked.
template <typename Visit>
static void ForEachPicked(const Visit& visit) {
  for (int64_t o = 0; o < kOuter; o++) {
    for (int64_t i = 0; i < kCount; i++) {
      const int64_t row = (kIndices[i] + kAxis) % kAxis;
      for (int64_t j = 0; j < kInner; j++) visit((o * kAxis + row) * kInner + j, (o * kCount + i) * kInner + j);
    }
  }
}

template <typename T>
static void ExpectTakeAndScatter() {
  std::vector<T> whole = SmallNumbers<T>(kOuter * kAxis * kInner, 8), picked(kOuter * kCount * kInner);
  Buffer a = View(whole), out = View(picked), indices = View(kIndices);
  Take(a, indices, out, kOuter, kAxis, kInner);
  ForEachPicked([&](int64_t from, int64_t to) { EXPECT(picked[to] == whole[from]); });

  std::vector<T> wanted = whole;
  ForEachPicked([&](int64_t to, int64_t from) { wanted[to] = static_cast<T>(wanted[to] + picked[from]); });
  ScatterAdd(out, indices, a, kOuter, kAxis, kInner);
  EXPECT(whole == wanted);
}

TEST(gather_takes_and_adds_by_index) {
  ExpectTakeAndScatter<float>();
  ExpectTakeAndScatter<uint8_t>();
  ExpectTakeAndScatter<int64_t>();
}

// ---- the gradient of an embedding -----------------------------------------------------------------------------------

struct Lookup {
  int64_t outer, axis, inner, count;

  /// Any row, some often, some from the end, some never.
  std::vector<int64_t> Indices() const {
    std::vector<int64_t> indices;
    std::mt19937 random(3);
    for (int64_t i = 0; i < count; i++)
      indices.push_back(static_cast<int64_t>(random() % (axis + axis / 2)) - axis / 2);
    return indices;
  }
};

// none, one, odd, enough for three threads: by rows, of which most are meant, and by slabs
static const std::vector<Lookup> kLookups = {{1, 3, 5, 0}, {0, 3, 5, 2},        {1, 1, 1, 1},
                                             {2, 7, 3, 9}, {1, 3001, 17, 9999}, {40, 11, 37, 90}};

/// ScatterSum (what stood in out does not count) or ScatterAdd, of numbers whose sums are exact.
template <typename T>
static void ExpectScatter(const Lookup& s, bool from_zero) {
  std::vector<int64_t> rows = s.Indices();
  std::vector<T> grad = SmallNumbers<T>(s.outer * s.count * s.inner, 5),
                 before = SmallNumbers<T>(s.outer * s.axis * s.inner, 6);
  std::vector<T> wanted = from_zero ? std::vector<T>(before.size()) : before;
  for (int64_t o = 0; o < s.outer; o++) {
    for (int64_t i = 0; i < s.count; i++) {
      T* to = &wanted[(o * s.axis + (rows[i] + s.axis) % s.axis) * s.inner];
      for (int64_t j = 0; j < s.inner; j++) to[j] = static_cast<T>(to[j] + grad[(o * s.count + i) * s.inner + j]);
    }
  }
  Buffer a = View(grad), indices = View(rows);
  ForEachSetting([&] {
    std::vector<T> out = before;
    Buffer result = View(out);
    (from_zero ? ScatterSum : ScatterAdd)(a, indices, result, s.outer, s.axis, s.inner);
    EXPECT(out == wanted);
  });
}

TEST(scatter_adds_what_repeated_indices_bring) {
  for (const Lookup& s : kLookups) {
    for (bool from_zero : {false, true}) {
      ExpectScatter<float>(s, from_zero);
      ExpectScatter<double>(s, from_zero);
      ExpectScatter<int32_t>(s, from_zero);
    }
  }
}

TEST(scatter_has_the_same_bits_on_any_number_of_threads) {
  const Lookup s{1, 3001, 17, 9999};
  std::vector<int64_t> rows = s.Indices();
  std::vector<float> grad = Reals<float>(s.count * s.inner, 7), out(s.axis * s.inner);
  Buffer a = View(grad), indices = View(rows), result = View(out);
  EXPECT(SameOnAnyThreads([&] {
    ScatterSum(a, indices, result, s.outer, s.axis, s.inner);
    return out;
  }));
}

TEST(gather_refuses_an_index_outside_and_leaves_out_alone) {
  for (int64_t bad : {int64_t{4}, int64_t{-5}, INT64_MAX, INT64_MIN}) {
    std::vector<int64_t> index = {0, bad};
    std::vector<float> whole(4, 1.0f), picked(2, 7.0f);
    Buffer a = View(whole), indices = View(index), out = View(picked);
    EXPECT_THROW(std::out_of_range, Take(a, indices, out, 1, 4, 1));
    EXPECT_THROW(std::out_of_range, ScatterAdd(out, indices, a, 1, 4, 1));
    EXPECT_THROW(std::out_of_range, ScatterSum(out, indices, a, 1, 4, 1));
    EXPECT((picked == std::vector<float>{7, 7} && whole == std::vector<float>(4, 1.0f)));
  }
}

TEST(gather_of_nothing_does_nothing) {
  Buffer a(0, DType::kFloat32), out(0, DType::kFloat32), indices(0, DType::kInt64);
  Take(a, indices, out, 0, 4, 5);
  ScatterAdd(out, indices, a, 3, 0, 5);
  EXPECT_THROW(std::invalid_argument, Take(a, indices, out, -1, 4, 5));
}
