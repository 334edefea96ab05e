// What every native function asks of its arguments before it touches memory.  Nothing here can overflow or be fooled.
#ifndef NEEDLE_CHECKS_H_
#define NEEDLE_CHECKS_H_

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace needle {

using Dims = std::vector<int64_t>;  // a shape, or strides in elements (which may be negative)

constexpr size_t kMaxDims = 64;  // as many as NumPy has

/// A ValueError in Python: "[who]: what came, what was wanted".
[[noreturn]] inline void Refuse(const char* who, const std::string& message) {
  throw std::invalid_argument(std::string(who) + ": " + message);
}

/// "(2, 3)", as Python writes it.
inline std::string Text(const Dims& dims) {
  std::string text = "(";
  for (size_t i = 0; i < dims.size(); i++) text += (i ? ", " : "") + std::to_string(dims[i]);
  return text + (dims.size() == 1 ? ",)" : ")");
}

/// The number of elements of a shape; refuses negative extents and products past 63 bits.
inline int64_t CheckedSize(const char* who, const Dims& shape) {
  bool empty = false;
  for (int64_t extent : shape) {
    if (extent < 0) Refuse(who, "shape " + Text(shape) + " has a negative extent");
    empty = empty || extent == 0;
  }
  int64_t size = 1;
  for (int64_t extent : shape) {
    if (!empty && __builtin_mul_overflow(size, extent, &size)) Refuse(who, "shape " + Text(shape) + " is too large");
  }
  return empty ? 0 : size;
}

/// Refuse a size that is not the one wanted.
inline void CheckSize(const char* who, const char* what, int64_t size, int64_t wanted) {
  if (size == wanted) return;
  Refuse(who, std::string(what) + " has " + std::to_string(size) + " elements, wanted " + std::to_string(wanted));
}

/// Refuse a view that reaches outside a storage of `storage` elements.  Returns its strides, those of axes of extent 1
/// (which lead nowhere, and may be anything) set to 0.
inline Dims CheckedStrides(const char* who, const Dims& shape, const Dims& strides, int64_t offset, int64_t storage) {
  if (shape.size() != strides.size() || shape.size() > kMaxDims) {
    Refuse(who, "shape " + Text(shape) + " and strides " + Text(strides) + ", wanted equal lengths up to " +
                    std::to_string(kMaxDims));
  }
  Dims safe(shape.size(), 0);
  if (CheckedSize(who, shape) == 0) return safe;

  int64_t lowest = offset, highest = offset;
  bool overflow = false;
  for (size_t axis = 0; axis < shape.size(); axis++) {
    int64_t reach = 0;
    if (shape[axis] > 1) safe[axis] = strides[axis];
    overflow |= __builtin_mul_overflow(shape[axis] - 1, safe[axis], &reach);
    overflow |= __builtin_add_overflow(reach < 0 ? lowest : highest, reach, reach < 0 ? &lowest : &highest);
  }
  if (overflow || lowest < 0 || highest >= storage) {
    Refuse(who, "shape " + Text(shape) + ", strides " + Text(strides) + ", offset " + std::to_string(offset) +
                    " reach outside the storage of " + std::to_string(storage) + " elements");
  }
  return safe;
}

/// The shape without the axes along which a view repeats itself (stride 0): setting each element once is enough.
inline Dims WithoutRepeats(Dims shape, const Dims& strides) {
  for (size_t axis = 0; axis < shape.size(); axis++) {
    if (strides[axis] == 0 && shape[axis] > 1) shape[axis] = 1;
  }
  return shape;
}

}  // namespace needle

#endif  // NEEDLE_CHECKS_H_
