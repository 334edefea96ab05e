#include "memory.h"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <new>

#include "memory_guard.h"

namespace needle {
namespace {

constexpr int64_t kAlignment = 64;               // one cache line, and the widest vector register
constexpr int64_t kPages = int64_t{1} << 20;     // from here on a piece has pages of its own, which really go back
constexpr int64_t kHugePage = int64_t{1} << 21;  // five times cheaper to get than the small ones that make it up
constexpr int64_t kMiB = int64_t{1} << 20;

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
constexpr bool kSanitized = __has_feature(address_sanitizer);
#else
constexpr bool kSanitized = false;
#endif

// ---- the system's memory --------------------------------------------------------------------------------------------

/// Ask for huge pages where a piece fills them; the rest stays as it is, so that no memory is taken for nothing.
void PreferHugePages([[maybe_unused]] char* memory, [[maybe_unused]] int64_t bytes) {
#ifdef MADV_HUGEPAGE
  const int64_t to_first = -reinterpret_cast<intptr_t>(memory) & (kHugePage - 1);
  const int64_t whole = (bytes - to_first) / kHugePage * kHugePage;
  if (whole > 0) madvise(memory + to_first, static_cast<size_t>(whole), MADV_HUGEPAGE);
#endif
}

void* AllocatePages(int64_t bytes) {
  void* memory = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  PreferHugePages(static_cast<char*>(memory), bytes);
  return memory;
}

bool HasPages(int64_t bytes) {
  return bytes >= kPages && !kSanitized;  // the sanitizer watches what comes from new
}

void* AllocateFromSystem(int64_t bytes) {
  if (HasPages(bytes)) return AllocatePages(bytes);
  return ::operator new(static_cast<size_t>(bytes), std::align_val_t{kAlignment}, std::nothrow);
}

void FreeToSystem(void* memory, int64_t bytes) noexcept {
  if (HasPages(bytes)) {
    munmap(memory, static_cast<size_t>(bytes));
  } else {
    ::operator delete(memory, std::align_val_t{kAlignment});
  }
}

// ---- what is kept ---------------------------------------------------------------------------------------------------

/// NEEDLE_CPU_CACHE: the most MiB that are kept; 0 switches the cache off, as do tools that watch each allocation.
int64_t MostCached() {
  if (kSanitized || GuardsMemory()) return 0;
  const char* wish = std::getenv("NEEDLE_CPU_CACHE");
  const int64_t mib = wish && *wish ? std::strtol(wish, nullptr, 10) : 1024;
  return std::clamp<int64_t>(mib, 0, int64_t{1} << 30) * kMiB;
}

CachingAllocator* MakeAllocator() {
  auto* allocator = new CachingAllocator({&AllocateFromSystem, &FreeToSystem}, {kAlignment, MostCached(), 16 * kMiB});
  pthread_atfork([] { MemoryAllocator().Lock(); }, [] { MemoryAllocator().Unlock(); },
                 [] { MemoryAllocator().Unlock(); });
  return allocator;
}

}  // namespace

CachingAllocator& MemoryAllocator() {
  static CachingAllocator* allocator = MakeAllocator();
  return *allocator;
}

void* AllocateMemory(int64_t bytes) {
  bytes = std::max<int64_t>(bytes, 1);  // nothing, too, has an address
  return GuardsMemory() ? AllocateGuarded(bytes) : MemoryAllocator().Allocate(bytes);
}

void FreeMemory(void* memory, int64_t bytes) noexcept {
  bytes = std::max<int64_t>(bytes, 1);
  if (!memory) return;
  GuardsMemory() ? FreeGuarded(memory, bytes) : MemoryAllocator().Free(memory, bytes);
}

}  // namespace needle
