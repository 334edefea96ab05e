// What all launches have in common: CUDA_CHECK, how many blocks to start, and which elements a thread takes.
#ifndef NEEDLE_KERNELS_CUDA_LAUNCH_H_
#define NEEDLE_KERNELS_CUDA_LAUNCH_H_

#include <algorithm>
#include <cstdint>

#include "../../cuda_check.h"

namespace needle {
namespace cuda {

constexpr int kWarp = 32;
constexpr int kThreads = 256;  // to a block: eight warps hide each other's waits, and any GPU has room for some blocks

/// The blocks that `threads` threads need, but at most some 64 for each multiprocessor of a large GPU: a thread whose
/// number is past the last takes a second element (see GRID_STRIDE), which costs less than another block.
inline unsigned BlocksFor(int64_t threads, int64_t threads_of_a_block = kThreads) {
  constexpr int64_t most = 64 * 128;
  return static_cast<unsigned>(std::min((threads + threads_of_a_block - 1) / threads_of_a_block, most));
}

}  // namespace cuda
}  // namespace needle

/// The elements of one thread: neighbours in a warp take neighbours in memory, so that one access serves all 32.
#define GRID_STRIDE(i, size)                                                                \
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < (size); \
       i += static_cast<int64_t>(gridDim.x) * blockDim.x)

#endif  // NEEDLE_KERNELS_CUDA_LAUNCH_H_
