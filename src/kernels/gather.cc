#include "gather.h"

#include <algorithm>
#include <stdexcept>

#include "../checks.h"
#include "arithmetic.h"
#include "parallel.h"

namespace needle {
namespace {

constexpr int64_t kGrain = 1 << 14;  // elements

void CheckIndices(const char* who, const Buffer& indices, int64_t axis_size) {
  const int64_t* index = indices.as<int64_t>();
  for (int64_t i = 0; i < indices.size(); i++) {
    if (index[i] >= -axis_size && index[i] < axis_size) continue;
    throw std::out_of_range(std::string(who) + ": index " + std::to_string(index[i]) +
                            " is out of bounds for an axis of " + std::to_string(axis_size) + " elements");
  }
}

/// `whole` has axis_size elements along the axis, `picked` one per index.
void CheckPair(const char* who, const char* whole_name, const Buffer& whole, const char* picked_name,
               const Buffer& picked, const Buffer& indices, int64_t outer, int64_t axis_size, int64_t inner) {
  CheckSize(who, whole_name, whole.size(), CheckedSize(who, {outer, axis_size, inner}));
  CheckDType(who, "indices", indices, DType::kInt64);
  CheckBuffer(who, picked_name, picked, CheckedSize(who, {outer, indices.size(), inner}), whole.dtype());
  CheckIndices(who, indices, axis_size);
}

/// Where row `index` (from the end if negative) of slab `outer` begins.
int64_t RowStart(int64_t outer, int64_t index, int64_t axis_size, int64_t inner) {
  return (outer * axis_size + (index < 0 ? index + axis_size : index)) * inner;
}

}  // namespace

void Take(const Buffer& a, const Buffer& indices, Buffer& out, int64_t outer, int64_t axis_size, int64_t inner) {
  CheckPair("take", "a", a, "out", out, indices, outer, axis_size, inner);
  CheckApart("take", a, out);
  CheckApart("take", indices, out);
  if (out.size() == 0) return;
  const int64_t* index = indices.as<int64_t>();
  const int64_t count = indices.size();
  Visit(a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    ParallelFor(outer * count, 1 + kGrain / inner, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; row++) {
        const T* from = a.as<T>() + RowStart(row / count, index[row % count], axis_size, inner);
        std::copy(from, from + inner, out.as<T>() + row * inner);
      }
    });
  });
}

void ScatterAdd(const Buffer& a, const Buffer& indices, Buffer& out, int64_t outer, int64_t axis_size, int64_t inner) {
  CheckPair("scatter_add", "out", out, "a", a, indices, outer, axis_size, inner);
  CheckApart("scatter_add", a, out);
  CheckApart("scatter_add", indices, out);
  if (a.size() == 0) return;
  const int64_t* index = indices.as<int64_t>();
  const int64_t count = indices.size();
  Visit(a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    // one slab is one thread's: two equal indices must not add at the same time
    ParallelFor(outer, 1 + kGrain / (count * inner), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin * count; row < end * count; row++) {
        const T* from = a.as<T>() + row * inner;
        T* to = out.as<T>() + RowStart(row / count, index[row % count], axis_size, inner);
        for (int64_t j = 0; j < inner; j++) to[j] = Add(to[j], from[j]);
      }
    });
  });
}

}  // namespace needle
