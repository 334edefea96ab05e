// Threads that work on one run of numbers together: a warp on a short run, a whole block on a long one.
#ifndef NEEDLE_KERNELS_CUDA_TEAM_H_
#define NEEDLE_KERNELS_CUDA_TEAM_H_

#include <cstring>

#include "launch.h"

namespace needle {
namespace cuda {

constexpr int64_t kLongRun = 1024;  // 32 elements to a thread of a warp: beyond, a block is faster

/// A value from the lane whose number differs in the bits of `mask`; of any plain type, since it travels as words.
template <typename State>
__device__ State ShuffleXor(State mine, int mask) {
  uint32_t words[(sizeof(State) + 3) / 4] = {};
  memcpy(words, &mine, sizeof(State));
  for (uint32_t& word : words) word = __shfl_xor_sync(0xffffffffu, word, mask);
  memcpy(&mine, words, sizeof(State));
  return mine;
}

/// What all 32 lanes fold to, in every lane.  In round k a lane meets the one 16 >> k away, so five rounds are enough.
/// `fold` gives the same for (x, y) and (y, x): all lanes then have the same bits.
template <typename State, typename Fold>
__device__ State FoldWarp(State mine, const Fold& fold) {
#pragma unroll
  for (int mask = kWarp / 2; mask > 0; mask /= 2) mine = fold(mine, ShuffleXor(mine, mask));
  return mine;
}

// ---- teams ----------------------------------------------------------------------------------------------------------

/// A team of kSize threads, 32 or the whole block.  Runs are dealt out to teams in turn.
template <int kSize>
struct Team {
  static_assert(kSize == kWarp || kSize == kThreads);
  static constexpr int kInBlock = kThreads / kSize;

  __device__ static int Rank() { return static_cast<int>(threadIdx.x) % kSize; }
  __device__ static int64_t First() {
    return static_cast<int64_t>(blockIdx.x) * kInBlock + static_cast<int>(threadIdx.x) / kSize;
  }
  __device__ static int64_t Step() { return static_cast<int64_t>(gridDim.x) * kInBlock; }

  /// What the team's threads fold to, in every thread.  All of them must come here, with as many `scratch` as warps.
  template <typename State, typename Fold>
  __device__ static State FoldAll(State mine, State* scratch, const Fold& fold) {
    mine = FoldWarp(mine, fold);
    if constexpr (kSize > kWarp) {
      constexpr int kWarps = kSize / kWarp;
      if (threadIdx.x % kWarp == 0) scratch[threadIdx.x / kWarp] = mine;
      __syncthreads();
      mine = scratch[0];
      for (int warp = 1; warp < kWarps; warp++) mine = fold(mine, scratch[warp]);
      __syncthreads();  // or a fast warp would write its next result over one that is still to be read
    }
    return mine;
  }
};

constexpr int kWarpsInBlock = kThreads / kWarp;

}  // namespace cuda
}  // namespace needle

#endif  // NEEDLE_KERNELS_CUDA_TEAM_H_
