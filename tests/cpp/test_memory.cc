// The caching allocator over a system that counts, and has a bound of its own.
#include <algorithm>
#include <cstdlib>
#include <new>
#include <thread>

#include "check.h"
#include "kernels/caching_allocator.h"

namespace {

using needle::CacheLimits;
using needle::CachingAllocator;
using needle::SizeClass;

int64_t given, bound, allocations;

void* Give(int64_t bytes) {
  if (given + bytes > bound) return nullptr;
  given += bytes;
  allocations++;
  return std::malloc(static_cast<size_t>(bytes));
}

void Take(void* memory, int64_t bytes) noexcept {
  given -= bytes;
  std::free(memory);
}

CachingAllocator Fresh(CacheLimits limits, int64_t most = INT64_MAX) {
  given = allocations = 0;
  bound = most;
  return CachingAllocator({&Give, &Take}, limits);
}

TEST(SizeClassesAreQuartersOfPowersOfTwo) {
  EXPECT(SizeClass(1, 64) == 64 && SizeClass(64, 64) == 64 && SizeClass(65, 64) == 80 && SizeClass(80, 64) == 80);
  EXPECT(SizeClass(513, 512) == 640 && SizeClass(1024, 512) == 1024 && SizeClass(1025, 512) == 1280);
  for (int64_t bytes = 1; bytes < int64_t{1} << 50; bytes += 1 + bytes / 7) {
    const int64_t reserved = SizeClass(bytes, 64);
    EXPECT(bytes <= reserved && reserved <= std::max<int64_t>(64, bytes + bytes / 4));
    EXPECT(SizeClass(reserved, 64) == reserved);
  }
}

TEST(WhatIsFreedIsHandedOutAgain) {
  CachingAllocator allocator = Fresh({64});
  void* a = allocator.Allocate(1000);
  void* b = allocator.Allocate(1000);
  allocator.Free(a, 1000);
  allocator.Free(b, 1000);
  EXPECT(allocator.Stats().live == 0 && allocator.Stats().cached == 2048 && allocator.Stats().peak == 2048);
  EXPECT(allocator.Allocate(1024) == b);  // the one freed last
  EXPECT(allocator.Allocate(900) == a);
  EXPECT(allocator.Stats().system_allocations == 2 && allocator.Stats().cached == 0);
  allocator.Free(a, 900);
  allocator.Free(b, 1024);
  allocator.EmptyCache();
  EXPECT(given == 0 && allocator.Stats().cached == 0);
}

TEST(WhatIdledLongestForItsSizeGoesFirstWhenTheCacheIsFull) {
  CachingAllocator allocator = Fresh({64, 1024 + 2048});
  void *a = allocator.Allocate(1024), *b = allocator.Allocate(2048), *c = allocator.Allocate(512);
  allocator.Free(c, 512);
  allocator.Free(a, 1024);
  allocator.Free(b, 2048);  // idle for 3 · 512, 2 · 1024 and 1 · 2048: of two alike the smaller
  EXPECT(allocator.Stats().cached == 512 + 2048);
  void* big = allocator.Allocate(4096);
  allocator.Free(big, 4096);  // larger than the whole cache: it goes straight back and drives nothing out
  EXPECT(allocator.Stats().cached == 512 + 2048);
  EXPECT(allocator.Allocate(2048) == b && allocator.Allocate(512) == c);
  allocator.Free(b, 2048);
  allocator.Free(c, 512);
  allocator.EmptyCache();
  EXPECT(given == 0);
}

TEST(NoMoreIsHeldThanWasOnceLiveAndAMargin) {
  CachingAllocator allocator = Fresh({64, INT64_MAX, 4096});
  for (int64_t bytes = 64; bytes < 100'000; bytes += 64) {
    allocator.Free(allocator.Allocate(bytes), bytes);
    EXPECT(given <= allocator.Stats().peak + 4096);
  }
  allocator.EmptyCache();
  EXPECT(given == 0);
}

TEST(WithoutMoreMemoryTheCacheIsGivenBack) {
  CachingAllocator allocator = Fresh({64}, 10'000);
  allocator.Free(allocator.Allocate(4096), 4096);
  allocator.Free(allocator.Allocate(2048), 2048);
  void* big = allocator.Allocate(8192);
  EXPECT(given == 8192 && allocator.Stats().cached == 0);
  EXPECT_THROW(std::bad_alloc, allocator.Allocate(4096));
  EXPECT(allocator.Stats().live == 8192);
  allocator.Free(big, 8192);
  allocator.EmptyCache();
}

TEST(ACacheOfNothingReservesWhatIsAskedFor) {
  CachingAllocator allocator = Fresh({64, 0});
  void* a = allocator.Allocate(1001);
  EXPECT(allocator.Stats().live == 1001);
  allocator.Free(a, 1001);
  EXPECT(given == 0 && allocator.Stats().cached == 0 && allocator.Allocate(0) == nullptr);
  EXPECT_THROW(std::bad_alloc, allocator.Allocate(INT64_MAX));
}

TEST(ManyThreadsMayAllocateAndFree) {
  CachingAllocator allocator = Fresh({64});
  auto work = [&](unsigned seed) {
    std::mt19937 random(seed);
    for (int i = 0; i < 2000; i++) {
      const int64_t bytes = 8 + random() % 5000;
      auto* memory = static_cast<unsigned*>(allocator.Allocate(bytes));
      *memory = seed;
      std::this_thread::yield();
      EXPECT(*memory == seed);
      allocator.Free(memory, bytes);
    }
  };
  std::vector<std::thread> threads;
  for (unsigned seed = 1; seed <= 4; seed++) threads.emplace_back(work, seed);
  for (std::thread& thread : threads) thread.join();
  EXPECT(allocator.Stats().live == 0);
  allocator.EmptyCache();
  EXPECT(given == 0);
}

}  // namespace
