// What all launches have in common: errors that become exceptions, and how many blocks to start.
#ifndef NEEDLE_KERNELS_CUDA_LAUNCH_H_
#define NEEDLE_KERNELS_CUDA_LAUNCH_H_

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace needle {
namespace cuda {

inline void Check(cudaError_t status, const char* call, const char* file, int line) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // forget it, or the next launch would report it again
  throw std::runtime_error(std::string("CUDA: ") + cudaGetErrorString(status) + ", from " + call + " at " + file + ":" +
                           std::to_string(line));
}

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

/// Turn the failure of a CUDA call into a std::runtime_error, which Python sees as a RuntimeError.
#define CUDA_CHECK(call) ::needle::cuda::Check((call), #call, __FILE__, __LINE__)

/// The elements of one thread: neighbours in a warp take neighbours in memory, so that one access serves all 32.
#define GRID_STRIDE(i, size)                                                                        \
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < (size);          \
       i += static_cast<int64_t>(gridDim.x) * blockDim.x)

#endif  // NEEDLE_KERNELS_CUDA_LAUNCH_H_
