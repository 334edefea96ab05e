// A checked view of flat storage in its shortest form.
#ifndef NEEDLE_KERNELS_VIEW_H_
#define NEEDLE_KERNELS_VIEW_H_

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "../checks.h"

namespace needle {

/// A checked view with as few axes as can describe it.
struct View {
  Dims shape, strides;
  int64_t offset;

  int64_t RunLength() const { return shape.empty() ? 1 : shape.back(); }
  int64_t RunStride() const { return shape.empty() ? 1 : strides.back(); }
};

/// Leave out axes of extent 1, and merge an axis with the one before it where one stride serves both.
inline View Simplify(const Dims& shape, const Dims& strides, int64_t offset) {
  View view{{}, {}, offset};
  for (size_t axis = 0; axis < shape.size(); axis++) {
    if (shape[axis] == 1) continue;
    if (!view.shape.empty() && view.strides.back() == strides[axis] * shape[axis]) {
      view.shape.back() *= shape[axis];
      view.strides.back() = strides[axis];
    } else {
      view.shape.push_back(shape[axis]);
      view.strides.push_back(strides[axis]);
    }
  }
  return view;
}

/// Whether two indices of the view may mean one element: then the order of writes matters.
inline bool MayRepeat(const View& view) {
  std::vector<std::pair<int64_t, int64_t>> axes;  // (step, extent)
  for (size_t axis = 0; axis < view.shape.size(); axis++)
    axes.push_back({std::abs(view.strides[axis]), view.shape[axis]});
  std::sort(axes.begin(), axes.end());
  int64_t reach = 0;  // of the axes with smaller steps
  for (auto [step, extent] : axes) {
    if (step <= reach) return true;
    reach += step * (extent - 1);
  }
  return false;
}

}  // namespace needle

#endif  // NEEDLE_KERNELS_VIEW_H_
