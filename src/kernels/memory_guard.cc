#include "memory_guard.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <string>

#include "memory.h"

namespace needle {
namespace {

constexpr int64_t kMargin = 64;             // bytes on each side, which keep the alignment
constexpr int kCanary = 0xC5, kNaN = 0xFF;  // floats and doubles of such bytes are NaN

std::mutex mutex;
std::string* complaint = nullptr;  // what was found first and nobody has been told; a destructor has nobody to tell

/// How many bytes of a margin are no longer what they were.
int64_t Overwritten(const unsigned char* margin) {
  int64_t count = 0;
  for (int64_t i = 0; i < kMargin; i++) count += margin[i] != kCanary;
  return count;
}

void CheckMargin(const unsigned char* margin, const char* side, int64_t bytes) {
  const int64_t count = Overwritten(margin);
  if (!count) return;
  const std::lock_guard<std::mutex> lock(mutex);
  if (complaint) return;
  complaint = new std::string("memory: " + std::to_string(count) + " of the " + std::to_string(kMargin) + " bytes " +
                              side + " a piece of " + std::to_string(bytes) +
                              " bytes were overwritten before it was freed; a kernel's index is out of bounds");
}

void ThrowComplaint() {
  const std::lock_guard<std::mutex> lock(mutex);
  if (!complaint) return;
  const std::string message = *complaint;
  delete complaint;
  complaint = nullptr;
  throw std::runtime_error(message);
}

void PrintComplaint() {
  if (complaint) std::fprintf(stderr, "%s\n", complaint->c_str());
}

}  // namespace

bool GuardsMemory() {
  static const bool guards = [] {
    const char* wish = std::getenv("NEEDLE_MEMORY_DEBUG");
    const bool wanted = wish && std::string(wish) == "1";
    if (wanted) std::atexit(&PrintComplaint);
    return wanted;
  }();
  return guards;
}

void* AllocateGuarded(int64_t bytes) {
  ThrowComplaint();
  if (bytes > INT64_MAX - 2 * kMargin) throw std::bad_alloc();
  auto* start = static_cast<unsigned char*>(MemoryAllocator().Allocate(bytes + 2 * kMargin));
  std::memset(start, kCanary, kMargin);
  std::memset(start + kMargin, kNaN, static_cast<size_t>(bytes));
  std::memset(start + kMargin + bytes, kCanary, kMargin);
  return start + kMargin;
}

void FreeGuarded(void* memory, int64_t bytes) noexcept {
  auto* piece = static_cast<unsigned char*>(memory);
  CheckMargin(piece - kMargin, "before", bytes);
  CheckMargin(piece + bytes, "after", bytes);
  std::memset(piece, kNaN, static_cast<size_t>(bytes));  // whoever still reads it shall notice
  MemoryAllocator().Free(piece - kMargin, bytes + 2 * kMargin);
}

}  // namespace needle
