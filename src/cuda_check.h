// CUDA_CHECK, in which every call of the CUDA API stands.
#ifndef NEEDLE_CUDA_CHECK_H_
#define NEEDLE_CUDA_CHECK_H_

#include <cuda_runtime.h>

#include <cstring>
#include <stdexcept>
#include <string>

/// Wrap every call of the CUDA API, and cudaGetLastError() after every launch: CUDA itself never complains.  A failure
/// becomes a RuntimeError in Python that names the call, the file and the line.
#define CUDA_CHECK(call) ::needle::cuda::CheckStatus((call), #call, __FILE__, __LINE__)

namespace needle {
namespace cuda {

inline void CheckStatus(cudaError_t status, const char* call, const char* path, int line) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // forget it, or the next check would report it again
  const char* slash = std::strrchr(path, '/');
  throw std::runtime_error(std::string(call) + " failed at " + (slash ? slash + 1 : path) + ":" + std::to_string(line) +
                           ": " + cudaGetErrorString(status) + " (" + cudaGetErrorName(status) + ")");
}

}  // namespace cuda
}  // namespace needle

#endif  // NEEDLE_CUDA_CHECK_H_
