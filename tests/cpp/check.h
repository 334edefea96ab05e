// The little that the C++ tests need: TEST, EXPECT, numbers that repeat, and buffers from vectors.
#ifndef NEEDLE_TESTS_CHECK_H_
#define NEEDLE_TESTS_CHECK_H_

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "kernels/buffer.h"
#include "kernels/isa.h"
#include "kernels/parallel.h"

struct TestCase {
  const char* name;
  void (*run)();
};

inline std::vector<TestCase>& Tests() {
  static std::vector<TestCase> tests;
  return tests;
}

inline int& Failures() {
  static int failures = 0;
  return failures;
}

struct TestRegistration {
  TestRegistration(const char* name, void (*run)()) { Tests().push_back({name, run}); }
};

#define TEST(name)                                              \
  static void name();                                           \
  static const TestRegistration name##_registered(#name, name); \
  static void name()

#define EXPECT(condition)                                                  \
  do {                                                                     \
    if (!(condition)) {                                                    \
      std::printf("%s:%d: expected %s\n", __FILE__, __LINE__, #condition); \
      Failures()++;                                                        \
    }                                                                      \
  } while (false)

#define EXPECT_THROW(Exception, statement)                                                     \
  do {                                                                                         \
    bool thrown = false;                                                                       \
    try {                                                                                      \
      statement;                                                                               \
    } catch (const Exception&) {                                                               \
      thrown = true;                                                                           \
    }                                                                                          \
    if (!thrown) {                                                                             \
      std::printf("%s:%d: expected %s from %s\n", __FILE__, __LINE__, #Exception, #statement); \
      Failures()++;                                                                            \
    }                                                                                          \
  } while (false)

namespace needle {
template <typename T>
constexpr DType DTypeOf() {
#define NEEDLE_MATCH(number, Candidate, name) \
  if (std::is_same_v<T, Candidate>) return DType::number;
  NEEDLE_DTYPES(NEEDLE_MATCH)
#undef NEEDLE_MATCH
}
}  // namespace needle

/// A buffer over a vector's memory.
template <typename T>
needle::Buffer View(std::vector<T>& values) {
  return needle::Buffer(values.data(), static_cast<int64_t>(values.size()), needle::DTypeOf<T>());
}

/// Whole numbers from -4 to 4, which floats add and multiply exactly.
template <typename T>
std::vector<T> SmallNumbers(int64_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<T> values(static_cast<size_t>(size));
  for (T& value : values) value = static_cast<T>(static_cast<int>(random() % 9) - (std::is_signed_v<T> ? 4 : 0));
  return values;
}

/// Numbers from -1 to 1.
template <typename T>
std::vector<T> Reals(int64_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<T> values(static_cast<size_t>(size));
  for (T& value : values) value = static_cast<T>(static_cast<double>(random()) / 0x80000000 - 1);
  return values;
}

/// Call body() with every instruction set that this machine has, on one thread and on more.
template <typename Body>
void ForEachSetting(const Body& body) {
  for (needle::Isa isa : needle::AvailableIsas()) {
    needle::SetIsa(needle::Name(isa));
    for (int64_t threads : {1, 2, 3}) {
      needle::SetNumThreads(threads);
      body();
    }
  }
  needle::SetIsa(needle::Name(needle::AvailableIsas().front()));
  needle::SetNumThreads(1);
}

/// Whether what make() returns has the same bits on one thread and on more, for every instruction set.
template <typename Make>
bool SameOnAnyThreads(const Make& make) {
  bool same = true;
  decltype(make()) on_one{};
  ForEachSetting([&] {
    if (needle::NumThreads() == 1) on_one = make();
    same = same && make() == on_one;
  });
  return same;
}

#endif  // NEEDLE_TESTS_CHECK_H_
