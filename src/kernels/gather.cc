#include "gather.h"

#include <algorithm>
#include <vector>

#include "arithmetic.h"
#include "parallel.h"

namespace needle {
namespace {

constexpr int64_t kGrain = 1 << 14;  // elements

/// The rows that the indices mean, counted from the start.  A copy: nobody can change it after it was checked.
std::vector<int64_t> CheckedRows(const char* who, const Buffer& indices, int64_t axis_size) {
  std::vector<int64_t> rows(indices.as<int64_t>(), indices.as<int64_t>() + indices.size());
  for (int64_t& row : rows) {
    if (row < -axis_size || row >= axis_size) RefuseIndex(who, row, axis_size);
    if (row < 0) row += axis_size;
  }
  return rows;
}

}  // namespace

void Take(const Buffer& a, const Buffer& indices, Buffer& out, int64_t outer, int64_t axis_size, int64_t inner) {
  CheckPair("take", "a", a, "out", out, indices, outer, axis_size, inner);
  const std::vector<int64_t> rows = CheckedRows("take", indices, axis_size);
  if (out.size() == 0) return;
  const int64_t count = indices.size();
  Visit(a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    ParallelFor(outer * count, 1 + kGrain / inner, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) {
        const T* from = a.as<T>() + (i / count * axis_size + rows[static_cast<size_t>(i % count)]) * inner;
        std::copy(from, from + inner, out.as<T>() + i * inner);
      }
    });
  });
}

void ScatterAdd(const Buffer& a, const Buffer& indices, Buffer& out, int64_t outer, int64_t axis_size, int64_t inner) {
  CheckPair("scatter_add", "out", out, "a", a, indices, outer, axis_size, inner);
  const std::vector<int64_t> rows = CheckedRows("scatter_add", indices, axis_size);
  if (a.size() == 0) return;
  const int64_t count = indices.size();
  Visit(a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    // one slab is one thread's: two equal indices must not add at the same time
    ParallelFor(outer, 1 + kGrain / (count * inner), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin * count; i < end * count; i++) {
        const T* from = a.as<T>() + i * inner;
        T* to = out.as<T>() + (i / count * axis_size + rows[static_cast<size_t>(i % count)]) * inner;
        for (int64_t j = 0; j < inner; j++) to[j] = Add(to[j], from[j]);
      }
    });
  });
}

void ScatterSum(const Buffer& a, const Buffer& indices, Buffer& out, int64_t outer, int64_t axis_size, int64_t inner) {
  CheckPair("scatter_sum", "out", out, "a", a, indices, outer, axis_size, inner);
  const std::vector<int64_t> rows = CheckedRows("scatter_sum", indices, axis_size);
  if (out.size() == 0) return;
  const int64_t count = indices.size();
  Visit(a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    // a thread owns some rows of out, and adds to them in the order of the indices, whoever owns the others
    ParallelFor(outer * axis_size, 1 + kGrain / inner, [&](int64_t begin, int64_t end) {
      std::fill(out.as<T>() + begin * inner, out.as<T>() + end * inner, T(0));
      for (int64_t slab = begin / axis_size; slab * axis_size < end; slab++) {
        for (int64_t i = 0; i < count; i++) {
          const int64_t row = slab * axis_size + rows[static_cast<size_t>(i)];
          if (row < begin || row >= end) continue;
          const T* from = a.as<T>() + (slab * count + i) * inner;
          T* to = out.as<T>() + row * inner;
          for (int64_t j = 0; j < inner; j++) to[j] = Add(to[j], from[j]);
        }
      }
    });
  });
}

}  // namespace needle
