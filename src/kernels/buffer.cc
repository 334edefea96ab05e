#include "buffer.h"

#include <atomic>
#include <cstdlib>
#include <new>
#include <utility>

#include "../checks.h"
#include "memory.h"

namespace needle {
namespace {

std::atomic<int64_t> allocated_bytes{0};

int64_t CheckedBytes(int64_t size, DType dtype) {
  int64_t bytes;
  if (size < 0) Refuse("Buffer", "size " + std::to_string(size) + " is negative");
  if (__builtin_mul_overflow(size, ItemSize(dtype), &bytes)) throw std::bad_alloc();
  return bytes;
}

}  // namespace

Buffer::Buffer(int64_t size, DType dtype)
    : data_(AllocateMemory(CheckedBytes(size, dtype))), size_(size), dtype_(dtype), owns_(true) {
  allocated_bytes += bytes();
}

Buffer::Buffer(void* memory, int64_t size, DType dtype, std::shared_ptr<void> owner)
    : data_(memory), size_(size), dtype_(dtype), owns_(false), owner_(std::move(owner)) {
  CheckedBytes(size, dtype);
}

Buffer::~Buffer() {
  if (!owns_) return;
  allocated_bytes -= bytes();
  FreeMemory(data_, bytes());
}

void* Buffer::operator new(size_t bytes) {
  if (void* memory = std::calloc(1, bytes)) return memory;
  throw std::bad_alloc();
}

void Buffer::operator delete(void* memory) {
  std::free(memory);
}

bool Buffer::Overlaps(const Buffer& other) const {
  const char *begin = as<char>(), *other_begin = other.as<char>();
  return begin < other_begin + other.bytes() && other_begin < begin + bytes();
}

int64_t AllocatedBytes() {
  return allocated_bytes;
}

void CheckDType(const char* who, const char* what, const Buffer& buffer, DType wanted) {
  if (buffer.dtype() == wanted) return;
  throw TypeError(std::string(who) + ": " + what + " is " + Name(buffer.dtype()) + ", wanted " + Name(wanted));
}

void CheckBuffer(const char* who, const char* what, const Buffer& buffer, int64_t size, DType dtype) {
  CheckDType(who, what, buffer, dtype);
  CheckSize(who, what, buffer.size(), size);
}

void CheckApart(const char* who, const Buffer& input, const Buffer& out) {
  if (input.Overlaps(out)) Refuse(who, "out shares memory with an input");
}

}  // namespace needle
