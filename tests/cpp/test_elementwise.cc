// Element-wise kernels where their meaning is easy to get wrong: wrap-around, NaN, bool, conversion.
#include <limits>

#include "check.h"
#include "kernels/arithmetic.h"
#include "kernels/elementwise.h"
#include "kernels/float_loops.h"
#include "kernels/isa.h"
#include "kernels/stores.h"

using namespace needle;

template <typename Rows>
static auto Kernel(const Rows& rows, const std::string& name) {
  for (const auto& row : rows) {
    if (row.name == name) return row.kernel;
  }
  throw std::runtime_error("no kernel " + name);
}

template <typename T, typename Result = T>
static std::vector<Result> Binary(const std::string& name, std::vector<T> a, std::vector<T> b) {
  std::vector<Result> out(a.size());
  Buffer left = View(a), right = View(b), result = View(out);
  Kernel(BinaryRows(), name)(left, right, result);
  return out;
}

template <typename T>
static std::vector<T> Unary(const std::string& name, std::vector<T> a) {
  std::vector<T> out(a.size());
  Buffer in = View(a), result = View(out);
  Kernel(UnaryRows(), name)(in, result);
  return out;
}

constexpr int32_t kLowest = std::numeric_limits<int32_t>::min(), kHighest = std::numeric_limits<int32_t>::max();

TEST(elementwise_integers_wrap_around) {
  EXPECT((Binary<int32_t>("ewise_add", {kHighest, 1}, {1, 2}) == std::vector<int32_t>{kLowest, 3}));
  EXPECT((Binary<int32_t>("ewise_mul", {kHighest, -3}, {2, 2}) == std::vector<int32_t>{-2, -6}));
  EXPECT((Binary<uint8_t>("ewise_mul", {255, 16}, {255, 16}) == std::vector<uint8_t>{1, 0}));
  EXPECT((Binary<int32_t>("ewise_power", {2, -2, 0, 3}, {31, 3, 0, 0}) == std::vector<int32_t>{kLowest, -8, 1, 1}));
  EXPECT((Unary<int32_t>("ewise_abs", {kLowest, -5, 5}) == std::vector<int32_t>{kLowest, 5, 5}));
  EXPECT_THROW(std::invalid_argument, Binary<int64_t>("ewise_power", {2}, {-1}));
}

TEST(elementwise_bool_adds_by_or_and_multiplies_by_and) {
  const std::vector<Bool> a = {false, false, true, true}, b = {false, true, false, true};
  EXPECT((Binary<Bool>("ewise_add", a, b) == std::vector<Bool>{false, true, true, true}));
  EXPECT((Binary<Bool>("ewise_mul", a, b) == std::vector<Bool>{false, false, false, true}));
  EXPECT((Binary<Bool, float>("ewise_ge", a, b) == std::vector<float>{1, 0, 1, 1}));
  EXPECT_THROW(TypeError, Unary<Bool>("ewise_sign", a));
}

TEST(elementwise_nan_wins_maximum_and_minimum_from_either_side) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const char* name : {"ewise_maximum", "ewise_minimum"}) {
    const std::vector<float> out = Binary<float>(name, {nan, 1, 2}, {1, nan, 2});
    EXPECT(std::isnan(out[0]) && std::isnan(out[1]) && out[2] == 2);
  }
}

TEST(elementwise_any_byte_of_a_bool_but_0_is_true) {
  std::vector<uint8_t> bytes = {0, 1, 2, 255};
  std::vector<int32_t> out(4);
  Buffer in(bytes.data(), 4, DType::kBool), result = View(out);
  Cast(in, result);
  EXPECT((out == std::vector<int32_t>{0, 1, 1, 1}));
}

TEST(elementwise_conversion_to_integers_is_defined_for_every_float) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  EXPECT(Convert<int32_t>(2.9) == 2 && Convert<int32_t>(-2.9) == -2);
  EXPECT(Convert<int32_t>(2147483647.5) == kHighest && Convert<int32_t>(-2147483648.5) == kLowest);
  for (double value : {nan, infinity, -infinity, 1e300, 2147483648.0}) EXPECT(Convert<int32_t>(value) == kLowest);
  EXPECT(Convert<int64_t>(9223372036854775808.0f) == std::numeric_limits<int64_t>::min());
  EXPECT(Convert<uint8_t>(300.0f) == 44 && Convert<uint8_t>(-1.0f) == 255);
  EXPECT(Convert<Bool>(nan) && Convert<Bool>(0.5) && !Convert<Bool>(-0.0));
}

template <typename T>
static T ToThePower(T base, double exponent) {
  std::vector<T> a = {base}, out(1);
  Buffer in = View(a), result = View(out);
  Kernel(ScalarRows(), "scalar_power")(in, Scalar(exponent), result);
  return out[0];
}

// those that need no logarithm, on numbers whose powers are exact, and one that does
TEST(elementwise_powers_equal_the_formula) {
  for (double exponent : {2.0, 3.0, -1.0, -2.0, 0.5, -0.5, 4.0}) {
    EXPECT(ToThePower<float>(4, exponent) == static_cast<float>(std::pow(4.0, exponent)));
    EXPECT(ToThePower<double>(0.25, exponent) == std::pow(0.25, exponent));
  }
}

TEST(elementwise_scalars_must_fit_the_dtype) {
  std::vector<uint8_t> bytes(2);
  Buffer out = View(bytes);
  EXPECT_THROW(std::overflow_error, Fill(out, Scalar(int64_t{256})));
  EXPECT_THROW(std::overflow_error, Fill(out, Scalar(-1.0)));
  EXPECT_THROW(std::invalid_argument, Fill(out, Scalar(1.5)));
  EXPECT_THROW(std::invalid_argument, Fill(out, Scalar(std::nan(""))));
  Fill(out, Scalar(7.0));
  EXPECT((bytes == std::vector<uint8_t>{7, 7}));
}

/// A loop leaves the same, bit by bit, whether it streams or not, on every length and from every place in a line; and
/// nothing beyond its end.
template <typename T>
static void ExpectStreamsEqual() {
  constexpr int64_t kMost = 150, kPlaces = 64 / sizeof(T);
  const FloatLoops<T>& loops = NEEDLE_DISPATCH(TableOfFloatLoops<T>)();
  const std::vector<T> a = SmallNumbers<T>(kMost, 1), b = SmallNumbers<T>(kMost, 2);
  for (int64_t size = 0; size < kMost; size += 1 + size / 40) {
    for (int64_t place = 0; place < kPlaces; place++) {
      std::vector<T> cached(kMost + kPlaces, T(7)), streamed = cached;
      const auto equal = [&](const auto& loop) {
        loop(cached.data() + place, Stores::kCached), loop(streamed.data() + place, Stores::kStreamed);
        EXPECT(cached == streamed);
      };
      equal([&](T* out, Stores stores) { loops.add(a.data(), 1, b.data(), 1, out, size, stores); });
      equal([&](T* out, Stores stores) { loops.mul(a.data(), 1, b.data(), 0, out, size, stores); });
      equal([&](T* out, Stores stores) { loops.exp(a.data(), out, size, stores); });
    }
  }
}

TEST(elementwise_streams_leave_what_cached_stores_do) {
  const std::string before = Name(IsaInUse());
  for (Isa isa : AvailableIsas()) {
    SetIsa(Name(isa));
    ExpectStreamsEqual<float>();
    ExpectStreamsEqual<double>();
  }
  SetIsa(before);
}

TEST(elementwise_results_are_streamed_if_no_cache_holds_them_and_no_input_is_replaced) {
  std::vector<float> numbers(3);
  const int64_t huge = int64_t{1} << 40;  // never read or written
  Buffer small(numbers.data(), 1, DType::kFloat32), other(1, DType::kFloat32);
  Buffer out(numbers.data() + 1, huge, DType::kFloat32);
  Buffer crooked(reinterpret_cast<char*>(numbers.data() + 1) + 1, huge, DType::kFloat32);
  EXPECT(StoresFor(out, {&small}) == Stores::kStreamed);
  EXPECT(StoresFor(out, {&small, &out}) == Stores::kCached);
  EXPECT(StoresFor(crooked, {&small}) == Stores::kCached);
  EXPECT(StoresFor(small, {&other}) == Stores::kCached);
}
