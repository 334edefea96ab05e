// Barriers of a block, and what the lanes of a warp do together.
#ifndef CUDA_EMU_SYNCHRONIZE_H_
#define CUDA_EMU_SYNCHRONIZE_H_

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "launch.h"

namespace cuda_emu {

enum class BarrierResult { kCount, kAnd, kOr };
enum class WarpOperation { kShuffle, kBallot, kSync };

CUDA_EMU_API void Barrier(const Site& site);
CUDA_EMU_API int ReducingBarrier(const Site& site, int predicate, BarrierResult which);
/// Waits for the lanes of `mask`.  kShuffle: the value of lane `source`; kBallot: the lanes whose value is not 0.
CUDA_EMU_API uint64_t WarpCollective(const Site& site, unsigned mask, uint64_t value, int source, WarpOperation what);
CUDA_EMU_API unsigned LaneId();
CUDA_EMU_API unsigned ActiveMask();
CUDA_EMU_API void Yield();  // lets other threads of the block run
CUDA_EMU_API void Fence();

template <class T>
inline T Shuffle(const Site& site, unsigned mask, T value, int source) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>, "a shuffle takes values of at most 8 bytes");
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = WarpCollective(site, mask, bits, source, WarpOperation::kShuffle);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

/// An element-wise meeting of a warp: every lane gets the combination of the values of all lanes of the mask.
template <class T, class Combine>
inline T WarpReduce(const Site& site, unsigned mask, T value, Combine combine) {
  T total{};
  bool first = true;
  const unsigned present = mask & ActiveMask();
  for (int lane = 0; lane < 32; lane++) {
    if ((present >> lane & 1) == 0) continue;
    T other = Shuffle(site, mask, value, lane);
    total = first ? other : combine(total, other);
    first = false;
  }
  return total;
}

}  // namespace cuda_emu

#define CUDA_EMU_WHERE const char *file = __builtin_FILE(), int line = __builtin_LINE()

// ---- barriers

inline void __syncthreads(CUDA_EMU_WHERE) {
  ::cuda_emu::Barrier({file, line, "__syncthreads()"});
}
inline int __syncthreads_count(int predicate, CUDA_EMU_WHERE) {
  return ::cuda_emu::ReducingBarrier({file, line, "__syncthreads_count()"}, predicate,
                                     ::cuda_emu::BarrierResult::kCount);
}
inline int __syncthreads_and(int predicate, CUDA_EMU_WHERE) {
  return ::cuda_emu::ReducingBarrier({file, line, "__syncthreads_and()"}, predicate, ::cuda_emu::BarrierResult::kAnd);
}
inline int __syncthreads_or(int predicate, CUDA_EMU_WHERE) {
  return ::cuda_emu::ReducingBarrier({file, line, "__syncthreads_or()"}, predicate, ::cuda_emu::BarrierResult::kOr);
}
inline void __syncwarp(unsigned mask = 0xffffffffu, CUDA_EMU_WHERE) {
  ::cuda_emu::WarpCollective({file, line, "__syncwarp()"}, mask, 0, 0, ::cuda_emu::WarpOperation::kSync);
}
inline void __threadfence() {
  ::cuda_emu::Fence();
}
inline void __threadfence_block() {}
inline void __threadfence_system() {
  ::cuda_emu::Fence();
}
inline void __nanosleep(unsigned) {
  ::cuda_emu::Yield();
}

// ---- shuffles: within groups of `width` neighbouring lanes; outside of the group a lane gets its own value

template <class T>
inline T __shfl_sync(unsigned mask, T value, int source, int width = 32, CUDA_EMU_WHERE) {
  const int lane = ::cuda_emu::LaneId(), first = lane & ~(width - 1);
  return ::cuda_emu::Shuffle({file, line, "__shfl_sync()"}, mask, value, first + (source & (width - 1)));
}
template <class T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, CUDA_EMU_WHERE) {
  const int lane = ::cuda_emu::LaneId(), source = (lane & (width - 1)) + static_cast<int>(delta);
  return ::cuda_emu::Shuffle({file, line, "__shfl_down_sync()"}, mask, value,
                             source < width ? lane + (int)delta : lane);
}
template <class T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, CUDA_EMU_WHERE) {
  const int lane = ::cuda_emu::LaneId(), source = (lane & (width - 1)) - static_cast<int>(delta);
  return ::cuda_emu::Shuffle({file, line, "__shfl_up_sync()"}, mask, value, source >= 0 ? lane - (int)delta : lane);
}
template <class T>
inline T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32, CUDA_EMU_WHERE) {
  const int lane = ::cuda_emu::LaneId(), other = lane ^ lane_mask;
  const bool in_reach = (other & ~(width - 1)) <= (lane & ~(width - 1));
  return ::cuda_emu::Shuffle({file, line, "__shfl_xor_sync()"}, mask, value, in_reach ? other : lane);
}

// ---- votes and reductions of a warp

inline unsigned __ballot_sync(unsigned mask, int predicate, CUDA_EMU_WHERE) {
  return static_cast<unsigned>(::cuda_emu::WarpCollective({file, line, "__ballot_sync()"}, mask, predicate != 0, 0,
                                                          ::cuda_emu::WarpOperation::kBallot));
}
inline int __any_sync(unsigned mask, int predicate, CUDA_EMU_WHERE) {
  return ::cuda_emu::WarpCollective({file, line, "__any_sync()"}, mask, predicate != 0, 0,
                                    ::cuda_emu::WarpOperation::kBallot) != 0;
}
inline int __all_sync(unsigned mask, int predicate, CUDA_EMU_WHERE) {
  return ::cuda_emu::WarpCollective({file, line, "__all_sync()"}, mask, predicate == 0, 0,
                                    ::cuda_emu::WarpOperation::kBallot) == 0;
}
template <class T>
inline T __reduce_add_sync(unsigned mask, T value, CUDA_EMU_WHERE) {
  return ::cuda_emu::WarpReduce({file, line, "__reduce_add_sync()"}, mask, value, [](T a, T b) { return a + b; });
}
template <class T>
inline T __reduce_min_sync(unsigned mask, T value, CUDA_EMU_WHERE) {
  return ::cuda_emu::WarpReduce({file, line, "__reduce_min_sync()"}, mask, value,
                                [](T a, T b) { return b < a ? b : a; });
}
template <class T>
inline T __reduce_max_sync(unsigned mask, T value, CUDA_EMU_WHERE) {
  return ::cuda_emu::WarpReduce({file, line, "__reduce_max_sync()"}, mask, value,
                                [](T a, T b) { return a < b ? b : a; });
}
template <class T>
inline T __reduce_and_sync(unsigned mask, T value, CUDA_EMU_WHERE) {
  return ::cuda_emu::WarpReduce({file, line, "__reduce_and_sync()"}, mask, value, [](T a, T b) { return a & b; });
}
template <class T>
inline T __reduce_or_sync(unsigned mask, T value, CUDA_EMU_WHERE) {
  return ::cuda_emu::WarpReduce({file, line, "__reduce_or_sync()"}, mask, value, [](T a, T b) { return a | b; });
}
inline unsigned __activemask() {
  return ::cuda_emu::ActiveMask();
}

#endif  // CUDA_EMU_SYNCHRONIZE_H_
