#include "caching_allocator.h"

#include <algorithm>
#include <new>

namespace needle {
namespace {

constexpr int64_t kLargest = int64_t{1} << 56;

int Log2(int64_t n) {
  return 63 - __builtin_clzll(static_cast<unsigned long long>(n));
}

/// Size classes by number, of all bytes that SizeClass returns.
size_t ClassNumber(int64_t reserved) {
  const int power = Log2(reserved);
  return static_cast<size_t>(4 * power + ((reserved >> (power - 2)) & 3));
}

int64_t BytesOfClass(size_t number) {
  return static_cast<int64_t>(4 + number % 4) << (number / 4 - 2);
}

}  // namespace

int64_t SizeClass(int64_t bytes, int64_t smallest) {
  if (bytes <= smallest) return smallest;
  const int quarter = Log2(bytes - 1) - 2;
  return (((bytes - 1) >> quarter) + 1) << quarter;
}

int64_t CachingAllocator::BytesToReserve(int64_t bytes) const {
  return Caches() ? SizeClass(bytes, limits_.smallest) : bytes;
}

void* CachingAllocator::Allocate(int64_t bytes) {
  if (bytes == 0) return nullptr;
  if (bytes > kLargest) throw std::bad_alloc();
  const int64_t reserved = BytesToReserve(bytes);
  const std::lock_guard<std::mutex> lock(mutex_);
  void* memory = stats_.cached >= reserved ? TakeKept(reserved) : nullptr;
  if (!memory) memory = FromSystem(reserved);
  stats_.live += reserved;
  stats_.peak = std::max(stats_.peak, stats_.live);
  most_live_ = std::max(most_live_, stats_.live);
  return memory;
}

void* CachingAllocator::TakeKept(int64_t reserved) {
  Kept& kept = kept_[ClassNumber(reserved)];
  if (kept.empty()) return nullptr;
  void* memory = kept.back().memory;  // which is most likely still in the processor's cache
  kept.pop_back();
  stats_.cached -= reserved;
  return memory;
}

void* CachingAllocator::FromSystem(int64_t reserved) {
  const int64_t live = stats_.live + reserved, most = std::max(live, most_live_);
  if (limits_.beyond_the_most_live < INT64_MAX) ReleaseUntil(most - live + limits_.beyond_the_most_live);
  void* memory = system_.allocate(reserved);
  if (!memory && stats_.cached) {  // what is kept in other sizes may be enough
    ReleaseUntil(0);
    memory = system_.allocate(reserved);
  }
  if (!memory) throw std::bad_alloc();
  stats_.system_allocations++;
  return memory;
}

void CachingAllocator::Free(void* memory, int64_t bytes) noexcept {
  if (!memory) return;
  const int64_t reserved = BytesToReserve(bytes);
  const std::lock_guard<std::mutex> lock(mutex_);
  stats_.live -= reserved;
  if (reserved > limits_.most_cached) return system_.free(memory, reserved);
  try {
    kept_[ClassNumber(reserved)].push_back({memory, ++clock_});
  } catch (const std::bad_alloc&) {  // no memory to note it in
    return system_.free(memory, reserved);
  }
  stats_.cached += reserved;
  ReleaseUntil(limits_.most_cached);
}

void CachingAllocator::ReleaseUntil(int64_t cached) {
  while (stats_.cached > cached) ReleaseMostIdle();
}

/// Large and old goes first: to make room, many small pieces would have to go, and all of them be fetched again.
void CachingAllocator::ReleaseMostIdle() {
  size_t chosen = 0;
  double most_idle = -1;
  for (size_t number = 0; number < kept_.size(); number++) {
    if (kept_[number].empty()) continue;
    const double age = static_cast<double>(clock_ - kept_[number].front().freed_at + 1);
    const double idle = age * static_cast<double>(BytesOfClass(number));
    if (idle > most_idle) most_idle = idle, chosen = number;
  }
  Kept& kept = kept_[chosen];
  system_.free(kept.front().memory, BytesOfClass(chosen));
  kept.erase(kept.begin());
  stats_.cached -= BytesOfClass(chosen);
}

MemoryStats CachingAllocator::Stats() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return stats_;
}

void CachingAllocator::ResetPeak() {
  const std::lock_guard<std::mutex> lock(mutex_);
  stats_.peak = stats_.live;
}

void CachingAllocator::EmptyCache() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ReleaseUntil(0);
  most_live_ = stats_.live;
}

}  // namespace needle
