// From <<< >>> to the blocks: is the launch allowed, what does it come to.
#include <pthread.h>

#include <algorithm>
#include <string>

#include "arena.h"
#include "checks.h"
#include "errors.h"
#include "faults.h"
#include "options.h"
#include "worker.h"
#include "workers.h"

namespace cuda_emu {

const Grid* running_grid;
std::atomic<uint32_t> launch_number{0};

namespace {

size_t allowed_shared_bytes = kStaticSharedBytes;  // for all kernels: what one asks for, all get

// A child must not inherit a lock that another thread of its parent holds.
void BeFitForForks() {
  static const bool once = [] {
    pthread_atfork([] { api_mutex.lock(); }, [] { api_mutex.unlock(); },
                   [] {
                     ForgetOtherWorkers();
                     ForgetTheClock();
                     api_mutex.unlock();
                   });
    return true;
  }();
  static_cast<void>(once);
}

// What a GPU would refuse too; empty if it is fine.
std::string WhyNot(const LaunchConfig& config, cudaError_t* error) {
  const dim3 &grid = config.grid, &block = config.block;
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  *error = cudaErrorInvalidConfiguration;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) {
    return "the grid " + Text(grid) + " is empty; launch nothing when there is nothing to do";
  }
  if (threads == 0) return "the block " + Text(block) + " is empty";
  if (threads > kMaxThreads) {
    return "the block " + Text(block) + " has " + std::to_string(threads) + " threads; at most " +
           std::to_string(kMaxThreads) + " are allowed";
  }
  if (block.z > 64) return "blockDim.z is " + std::to_string(block.z) + "; at most 64 are allowed";
  if (grid.x > 2147483647u) return "gridDim.x is " + std::to_string(grid.x) + "; at most 2147483647 are allowed";
  if (grid.y > 65535 || grid.z > 65535) {
    return "the grid is " + Text(grid) + "; gridDim.y and gridDim.z may be at most 65535";
  }
  if (config.shared_bytes > allowed_shared_bytes) {
    *error = cudaErrorInvalidValue;
    return std::to_string(config.shared_bytes) + " bytes of dynamic shared memory; at most " +
           std::to_string(allowed_shared_bytes) +
           (allowed_shared_bytes == kMostSharedBytes ? " are allowed" : " are allowed without cudaFuncSetAttribute");
  }
  return "";
}

}  // namespace

cudaError_t AllowDynamicShared(int bytes) {
  if (bytes < 0 || static_cast<size_t>(bytes) > kMostSharedBytes) {
    return SetError(cudaErrorInvalidValue, "cudaFuncSetAttribute: " + std::to_string(bytes) +
                                               " bytes of dynamic shared memory; at most " +
                                               std::to_string(kMostSharedBytes) + " are allowed");
  }
  allowed_shared_bytes = std::max(allowed_shared_bytes, static_cast<size_t>(bytes));
  return cudaSuccess;
}

void ForgetAttributes() {
  allowed_shared_bytes = kStaticSharedBytes;
}

void RunGrid(const Grid& grid) {
  Initialize();
  std::lock_guard<std::mutex> lock(api_mutex);
  if (HasStuckError()) return;
  cudaError_t error;
  const std::string why_not = WhyNot(grid.config, &error);
  if (!why_not.empty()) return RefuseLaunch(error, grid.config, why_not);
  BeFitForForks();
  WatchForFaults();
  WatchTheClock();
  BeginErrors();
  launch_number++;
  running_grid = &grid;
  kernel_fenced = kernel_locked = false;
  checks->GridStarts(grid);
  RunBlocks(grid);
  checks->GridEnds(grid);
  running_grid = nullptr;
  CloseAfterKernel();
  FinishLaunch(grid.config);
}

}  // namespace cuda_emu
