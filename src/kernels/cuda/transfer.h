// Copies between the memory of the CPU and that of the GPU.
#ifndef NEEDLE_KERNELS_CUDA_TRANSFER_H_
#define NEEDLE_KERNELS_CUDA_TRANSFER_H_

#include <cstdint>

namespace needle {
namespace cuda {

/// Returns once `host` has been read, which may be before the GPU has it all; kernels launched later see it.
void CopyToDevice(const void* host, void* device, int64_t bytes);

/// Waits for the kernels launched before.
void CopyToHost(const void* device, void* host, int64_t bytes);

/// Wait until the GPU has done all that was asked of it.
void Synchronize();

}  // namespace cuda
}  // namespace needle

#endif  // NEEDLE_KERNELS_CUDA_TRANSFER_H_
