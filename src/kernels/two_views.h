// Two strided operands of one shape, walked together without a copy of either.
#ifndef NEEDLE_KERNELS_TWO_VIEWS_H_
#define NEEDLE_KERNELS_TWO_VIEWS_H_

#include <algorithm>
#include <memory>

#include "../checks.h"
#include "buffer.h"
#include "parallel.h"
#include "strided.h"

namespace needle {

/// A view whose neighbours along the last axis are neighbours in memory, or one element (stride 0): what a loop over
/// vectors can read.  It is copied only if it is neither.
class ReadableView {
 public:
  ReadableView(const char* who, const Buffer& a, const Dims& shape, const Dims& strides, int64_t offset)
      : buffer_(&a), strides_(CheckedStrides(who, shape, strides, offset, a.size())), offset_(offset) {
    size_t last = shape.size();
    while (last > 0 && shape[last - 1] == 1) last--;
    if (last == 0 || strides_[last - 1] == 0 || strides_[last - 1] == 1) return;
    copy_ = std::make_unique<Buffer>(CheckedSize(who, shape), a.dtype());
    Compact(a, *copy_, shape, strides_, offset);
    buffer_ = copy_.get(), offset_ = 0;
    int64_t step = 1;
    for (size_t axis = last; axis-- > 0; step *= shape[axis]) strides_[axis] = step;
  }

  template <typename T>
  const T* data() const {
    return buffer_->as<T>();
  }
  const Dims& strides() const { return strides_; }
  int64_t offset() const { return offset_; }

 private:
  const Buffer* buffer_;
  std::unique_ptr<Buffer> copy_;
  Dims strides_;
  int64_t offset_;
};

/// Both, with as few axes as can describe them.
struct TwoViews {
  TwoViews(const Dims& full_shape, const ReadableView& a, const ReadableView& b) : at_a(a.offset()), at_b(b.offset()) {
    for (size_t axis = 0; axis < full_shape.size(); axis++) {
      const int64_t extent = full_shape[axis], a_stride = a.strides()[axis], b_stride = b.strides()[axis];
      if (extent == 1) continue;
      const bool merges =
          !shape.empty() && a_strides.back() == a_stride * extent && b_strides.back() == b_stride * extent;
      if (!merges) shape.push_back(1), a_strides.push_back(0), b_strides.push_back(0);
      shape.back() *= extent, a_strides.back() = a_stride, b_strides.back() = b_stride;
    }
    if (shape.empty()) shape = {1}, a_strides = b_strides = {0};
  }

  int64_t a_step() const { return a_strides.back(); }
  int64_t b_step() const { return b_strides.back(); }

  /// Call visit(i, at_a, at_b, length) for runs along the last axis, on several threads: each begins with the i-th
  /// element of the shape.
  template <typename Visit>
  void ForEachRun(int64_t grain, const Visit& visit) const {
    const int64_t length = shape.back();
    if (shape.size() == 1) {
      return ParallelFor(length, grain, [&](int64_t begin, int64_t end) {
        visit(begin, at_a + begin * a_step(), at_b + begin * b_step(), end - begin);
      });
    }
    int64_t runs = 1;
    for (size_t axis = 0; axis + 1 < shape.size(); axis++) runs *= shape[axis];
    ParallelFor(runs, std::max<int64_t>(1, grain / length), [&](int64_t begin, int64_t end) {
      for (Walk walk(*this, begin); begin < end; begin++, walk.Next()) {
        visit(begin * length, walk.at_a, walk.at_b, length);
      }
    });
  }

 private:
  /// Counts the runs like an odometer.
  struct Walk {
    Walk(const TwoViews& views, int64_t run)
        : views(views), index(views.shape.size() - 1), at_a(views.at_a), at_b(views.at_b) {
      for (size_t axis = index.size(); axis-- > 0; run /= views.shape[axis]) {
        index[axis] = run % views.shape[axis];
        at_a += index[axis] * views.a_strides[axis];
        at_b += index[axis] * views.b_strides[axis];
      }
    }

    void Next() {
      for (size_t axis = index.size(); axis-- > 0; index[axis] = 0) {
        at_a += views.a_strides[axis];
        at_b += views.b_strides[axis];
        if (++index[axis] < views.shape[axis]) return;
        at_a -= views.a_strides[axis] * views.shape[axis];
        at_b -= views.b_strides[axis] * views.shape[axis];
      }
    }

    const TwoViews& views;
    Dims index;
    int64_t at_a, at_b;
  };

  Dims shape, a_strides, b_strides;
  int64_t at_a, at_b;
};

}  // namespace needle

#endif  // NEEDLE_KERNELS_TWO_VIEWS_H_
