// reduce() of cooperative groups.
#ifndef CUDA_EMU_COOPERATIVE_GROUPS_REDUCE_H_
#define CUDA_EMU_COOPERATIVE_GROUPS_REDUCE_H_

#include "../cooperative_groups.h"

namespace cooperative_groups {

template <class T>
struct plus {
  T operator()(T a, T b) const { return a + b; }
};
template <class T>
struct less {
  T operator()(T a, T b) const { return b < a ? b : a; }
};
template <class T>
struct greater {
  T operator()(T a, T b) const { return a < b ? b : a; }
};

/// Every thread of the tile gets the combination of the values of all of them.
template <unsigned Size, class Parent, class T, class Combine>
inline T reduce(const thread_block_tile<Size, Parent>& tile, T value, Combine combine, CUDA_EMU_WHERE) {
  for (unsigned distance = Size / 2; distance > 0; distance /= 2) {
    value = combine(value, tile.shfl_xor(value, distance, file, line));
  }
  return value;
}

}  // namespace cooperative_groups

#endif  // CUDA_EMU_COOPERATIVE_GROUPS_REDUCE_H_
