// Cooperative groups, the basics: the block, and tiles of a warp (thread_block_tile, tiled_partition).  There are no
// groups larger than a block.
#ifndef CUDA_EMU_COOPERATIVE_GROUPS_H_
#define CUDA_EMU_COOPERATIVE_GROUPS_H_

#include "cuda_emu.h"

namespace cooperative_groups {

/// All threads of a block.
class thread_block {
 public:
  void sync(CUDA_EMU_WHERE) const { ::cuda_emu::Barrier({file, line, "thread_block::sync()"}); }
  unsigned thread_rank() const { return ::cuda_emu::LinearThread(); }
  unsigned size() const { return blockDim.x * blockDim.y * blockDim.z; }
  unsigned num_threads() const { return size(); }
  dim3 group_index() const { return dim3(blockIdx); }
  dim3 thread_index() const { return dim3(threadIdx); }
  dim3 dim_threads() const { return blockDim; }
};

inline thread_block this_thread_block() {
  return {};
}

/// `Size` neighbouring lanes of a warp.
template <unsigned Size, class Parent = thread_block>
class thread_block_tile {
  static_assert(Size >= 1 && Size <= 32 && (Size & (Size - 1)) == 0, "a tile has 1, 2, 4, 8, 16 or 32 threads");

 public:
  unsigned thread_rank() const { return ::cuda_emu::LaneId() & (Size - 1); }
  static constexpr unsigned size() { return Size; }
  static constexpr unsigned num_threads() { return Size; }
  unsigned meta_group_rank() const { return this_thread_block().thread_rank() / Size; }
  unsigned meta_group_size() const { return (this_thread_block().size() + Size - 1) / Size; }

  void sync(CUDA_EMU_WHERE) const {
    ::cuda_emu::WarpCollective({file, line, "tile.sync()"}, mask(), 0, 0, ::cuda_emu::WarpOperation::kSync);
  }
  template <class T>
  T shfl(T value, int rank, CUDA_EMU_WHERE) const {
    return __shfl_sync(mask(), value, rank, Size, file, line);
  }
  template <class T>
  T shfl_down(T value, unsigned delta, CUDA_EMU_WHERE) const {
    return __shfl_down_sync(mask(), value, delta, Size, file, line);
  }
  template <class T>
  T shfl_up(T value, unsigned delta, CUDA_EMU_WHERE) const {
    return __shfl_up_sync(mask(), value, delta, Size, file, line);
  }
  template <class T>
  T shfl_xor(T value, unsigned rank_mask, CUDA_EMU_WHERE) const {
    return __shfl_xor_sync(mask(), value, static_cast<int>(rank_mask), Size, file, line);
  }
  int any(int predicate, CUDA_EMU_WHERE) const { return __any_sync(mask(), predicate, file, line); }
  int all(int predicate, CUDA_EMU_WHERE) const { return __all_sync(mask(), predicate, file, line); }
  unsigned ballot(int predicate, CUDA_EMU_WHERE) const {
    return __ballot_sync(mask(), predicate, file, line) >> (::cuda_emu::LaneId() & ~(Size - 1));
  }

  /// The lanes of the tile, as bits of the warp.
  unsigned mask() const {
    const unsigned first = ::cuda_emu::LaneId() & ~(Size - 1);
    return (Size == 32 ? 0xffffffffu : (1u << (Size & 31)) - 1) << first;
  }
};

template <unsigned Size, class Parent>
inline thread_block_tile<Size, Parent> tiled_partition(const Parent&) {
  return {};
}

template <class Group>
inline void sync(const Group& group, CUDA_EMU_WHERE) {
  group.sync(file, line);
}

}  // namespace cooperative_groups

#endif  // CUDA_EMU_COOPERATIVE_GROUPS_H_
