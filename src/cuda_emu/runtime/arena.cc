#include "arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "checks.h"
#include "errors.h"
#include "faults.h"
#include "options.h"

namespace cuda_emu {

char *arena_begin, *arena_end;
std::mutex api_mutex;

namespace {

constexpr size_t kWantedBytes = size_t{64} << 30, kLeastBytes = size_t{1} << 30;
// Closing and opening an array takes time with its size. The fast build leaves large ones open.
constexpr size_t kLargeBytes = size_t{1} << 20;
constexpr int kUnwritten = 0xff;  // four of them are a NaN

size_t arena_pages, next_page = 1;
size_t max_allocations;   // each takes at least two pages
uint32_t* owner_of_page;  // 1 + the index of an allocation; 0: nobody's
Allocation* allocations;
uint32_t n_allocations;
std::vector<uint32_t> unused_records;
size_t live_bytes;
unsigned last_serial;

// Pages of freed arrays, first page -> how many, neighbours joined.  They are taken again only when all others have
// been.
std::map<size_t, size_t> freed_pages;
size_t search_from;  // where the last search ended, so that what was freed long ago goes first

char* PageAddress(size_t page) {
  return arena_begin + page * kPage;
}

bool Protect(const Allocation& allocation, int protection) {
  return mprotect(PageAddress(allocation.first_page), allocation.n_pages * kPage, protection) == 0;
}

// A run of n pages, or 0.
size_t TakeFreedPages(size_t n) {
  auto fits = [n](const auto& run) { return run.second >= n; };
  auto start = freed_pages.lower_bound(search_from);
  auto found = start;
  while (found != freed_pages.end() && !fits(*found)) ++found;
  if (found == freed_pages.end()) {
    for (found = freed_pages.begin(); found != start && !fits(*found);) ++found;
    if (found == start) return 0;
  }
  auto [page, length] = *found;
  freed_pages.erase(found);
  if (length > n) freed_pages[page + n] = length - n;
  search_from = page + n;
  return page;
}

size_t TakePages(size_t n) {
  if (n > arena_pages) return 0;
  if (next_page + n > arena_pages) return TakeFreedPages(n);
  next_page += n;
  return next_page - n;
}

void GiveBackPages(size_t page, size_t n) {
  auto after = freed_pages.lower_bound(page);
  if (after != freed_pages.end() && after->first == page + n) {
    n += after->second;
    after = freed_pages.erase(after);
  }
  if (after != freed_pages.begin() && std::prev(after)->first + std::prev(after)->second == page) {
    std::prev(after)->second += n;
  } else {
    freed_pages[page] = n;
  }
}

void SetOwner(size_t page, uint32_t owner) {
  const uint32_t former = owner_of_page[page];
  // whoever loses its last page here is forgotten
  if (former != 0 && --allocations[former - 1].pages_owned == 0) unused_records.push_back(former - 1);
  owner_of_page[page] = owner;
}

uint32_t NewRecord() {
  if (unused_records.empty()) return n_allocations++;
  const uint32_t record = unused_records.back();
  unused_records.pop_back();
  return record;
}

bool WrittenPastItsEnd(Allocation& allocation) {
  Open(allocation);
  const char* end = PageAddress(allocation.first_page + allocation.n_pages);
  for (const char* p = allocation.base + allocation.size; p < end; p++) {
    if (static_cast<unsigned char>(*p) != kUnwritten) return true;
  }
  return false;
}

// What kernels have opened since the launch.  Filled by the handler of faults, so without a lock or an allocation.
Allocation* opened[1 << 16];
std::atomic<unsigned> n_opened{0};

}  // namespace

char* Reserve(size_t bytes, bool usable) {
  void* memory = mmap(nullptr, bytes, usable ? PROT_READ | PROT_WRITE : PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<char*>(memory);
}

void Initialize() {
  static std::once_flag once;
  std::call_once(once, [] {
    ReadEnvironment();
    size_t bytes = kWantedBytes;
    while (bytes >= kLeastBytes && (arena_begin = Reserve(bytes, false)) == nullptr) bytes /= 2;
    if (arena_begin == nullptr) bytes = 0;  // every allocation will fail with "out of memory"
    arena_end = arena_begin + bytes;
    arena_pages = bytes / kPage;
    owner_of_page = reinterpret_cast<uint32_t*>(Reserve((arena_pages + 1) * sizeof(uint32_t), true));
    max_allocations = arena_pages / 2;
    allocations = reinterpret_cast<Allocation*>(Reserve((max_allocations + 1) * sizeof(Allocation), true));
    WatchForFaults();
  });
}

size_t LiveBytes() {
  return live_bytes;
}

Allocation* FindAllocation(const void* pointer) {
  if (!InArena(pointer)) return nullptr;
  const uint32_t owner = owner_of_page[(static_cast<const char*>(pointer) - arena_begin) / kPage];
  return owner == 0 ? nullptr : &allocations[owner - 1];
}

Allocation* FindNeighbour(const void* pointer) {
  if (Allocation* found = FindAllocation(pointer)) return found;
  const auto* p = static_cast<const char*>(pointer);
  Allocation *before = nullptr, *after = nullptr;
  for (ptrdiff_t page = 1; page <= 64; page++) {
    if (before == nullptr) before = FindAllocation(p - page * ptrdiff_t{kPage});
    if (after == nullptr) after = FindAllocation(p + page * ptrdiff_t{kPage});
  }
  if (before == nullptr || after == nullptr) return before == nullptr ? after : before;
  return p - (before->base + before->size) <= after->base - p ? before : after;
}

bool Open(Allocation& allocation) {
  if (allocation.open.exchange(true)) return false;
  Protect(allocation, PROT_READ | PROT_WRITE);
  return true;
}

void OpenForKernel(Allocation& allocation) {
  if (!Open(allocation)) return;
  const unsigned i = n_opened++;
  if (i < sizeof(opened) / sizeof(opened[0])) opened[i] = &allocation;
}

void Close(Allocation& allocation) {
  if (!options.guard || allocation.kind != MemoryKind::kDevice) return;
  if (allocation.size > kLargeBytes && !checks->GuardLarge()) return;
  if (allocation.open.exchange(false)) Protect(allocation, PROT_NONE);
}

void CloseAfterKernel() {
  const unsigned n = std::min<unsigned>(n_opened.exchange(0), sizeof(opened) / sizeof(opened[0]));
  for (unsigned i = 0; i < n; i++) {
    if (opened[i]->live) Close(*opened[i]);
  }
}

cudaError_t Allocate(void** pointer, size_t bytes, MemoryKind kind) {
  Initialize();
  std::lock_guard<std::mutex> lock(api_mutex);
  *pointer = nullptr;
  if (HasStuckError()) return LastError();
  if (bytes == 0) return cudaSuccess;
  if (bytes > static_cast<size_t>(arena_end - arena_begin)) return SetError(cudaErrorMemoryAllocation);
  const size_t n_pages = (bytes + 15 + kPage - 1) / kPage;
  const size_t page = TakePages(n_pages + 1);  // and a guard page behind
  if (page == 0 || (unused_records.empty() && n_allocations == max_allocations)) {
    return SetError(cudaErrorMemoryAllocation);
  }
  const uint32_t record = NewRecord();
  Allocation& allocation = allocations[record];
  char* first = PageAddress(page);
  allocation.first_page = page;
  allocation.n_pages = allocation.pages_owned = n_pages;
  // aligned to 16 bytes, so it ends up to 15 bytes before the guard page
  allocation.base =
      reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(first + n_pages * kPage - bytes) & ~uintptr_t{15});
  allocation.size = bytes;
  allocation.kind = kind;
  allocation.serial = ++last_serial;
  for (size_t i = 0; i < n_pages; i++) SetOwner(page + i, record + 1);
  SetOwner(page + n_pages, 0);
  if (!Protect(allocation, PROT_READ | PROT_WRITE)) {
    return SetError(cudaErrorMemoryAllocation,
                    "the operating system has no more memory maps: too many arrays are alive");
  }
  allocation.live = allocation.open = true;
  std::memset(first, kUnwritten, n_pages * kPage);
  live_bytes += bytes;
  checks->Allocated(allocation);
  Close(allocation);
  *pointer = allocation.base;
  return cudaSuccess;
}

}  // namespace cuda_emu

using namespace cuda_emu;

cudaError_t cudaFree(void* pointer) {
  if (pointer == nullptr) return cudaSuccess;
  Initialize();
  std::lock_guard<std::mutex> lock(api_mutex);
  Allocation* allocation = FindAllocation(pointer);
  if (allocation == nullptr || allocation->base != pointer) {
    return SetError(cudaErrorInvalidValue, "cudaFree: a pointer that cudaMalloc did not return");
  }
  if (!allocation->live) {
    return SetError(cudaErrorInvalidValue,
                    "cudaFree: the same pointer a second time (" + ExtentText(*allocation) + ")");
  }
  if (WrittenPastItsEnd(*allocation)) {
    std::fprintf(stderr, "[cuda_emu] cudaFree: something has written past the end of %s\n",
                 ExtentText(*allocation).c_str());
  }
  checks->Freed(*allocation);
  allocation->live = allocation->open = false;
  live_bytes -= allocation->size;
  // a new mapping in the place of the old one gives the memory back, but keeps the addresses
  mmap(PageAddress(allocation->first_page), allocation->n_pages * kPage, PROT_NONE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  GiveBackPages(allocation->first_page, allocation->n_pages + 1);
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* pointer) {
  return cudaFree(pointer);
}
