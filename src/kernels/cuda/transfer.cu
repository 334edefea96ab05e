#include "transfer.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "launch.h"

namespace needle {
namespace cuda {
namespace {

// The GPU fetches by itself, at full speed, only from pages that the system promises not to move (pinned ones).  What
// Python has lies elsewhere, so it goes through two pinned chunks: while the GPU fetches one, the CPU fills the other.
constexpr int64_t kChunk = 4 << 20;
constexpr int64_t kSmall = 64 << 10;  // up to this, the driver does as well by itself

struct Chunk {
  char* memory = nullptr;
  cudaEvent_t done = nullptr;  // the GPU needs the chunk no more
};

/// The stream waits for kernels launched before, and kernels launched later for it: all others use the default stream.
class Ferry {
 public:
  /// Never destroyed: at the end of the process the driver may go first.
  static Ferry& Get() {
    static Ferry* ferry = new Ferry;
    return *ferry;
  }

  void ToDevice(const char* host, char* device, int64_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Prepare();
    for (int64_t begin = 0; begin < bytes; begin += kChunk) {
      const int64_t length = std::min(kChunk, bytes - begin);
      Chunk& chunk = Next();
      CUDA_CHECK(cudaEventSynchronize(chunk.done));
      std::memcpy(chunk.memory, host + begin, static_cast<size_t>(length));
      Send(chunk, device + begin, chunk.memory, length, cudaMemcpyHostToDevice);
    }
  }

  void ToHost(const char* device, char* host, int64_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Prepare();
    Chunk* before = nullptr;
    for (int64_t begin = 0; begin < bytes + kChunk; begin += kChunk) {  // in round i chunk i leaves, i - 1 arrives
      Chunk* chunk = nullptr;
      if (begin < bytes) {
        chunk = &Next();
        CUDA_CHECK(cudaEventSynchronize(chunk->done));
        Send(*chunk, chunk->memory, device + begin, std::min(kChunk, bytes - begin), cudaMemcpyDeviceToHost);
      }
      if (before) {
        CUDA_CHECK(cudaEventSynchronize(before->done));
        const int64_t place = begin - kChunk;
        std::memcpy(host + place, before->memory, static_cast<size_t>(std::min(kChunk, bytes - place)));
      }
      before = chunk;
    }
  }

 private:
  void Prepare() {
    if (stream_) return;
    for (Chunk& chunk : chunks_) {
      if (!chunk.memory) CUDA_CHECK(cudaMallocHost(&chunk.memory, static_cast<size_t>(kChunk)));
      if (!chunk.done) CUDA_CHECK(cudaEventCreate(&chunk.done));
    }
    CUDA_CHECK(cudaStreamCreate(&stream_));
  }

  Chunk& Next() {
    turn_ = 1 - turn_;
    return chunks_[turn_];
  }

  void Send(Chunk& chunk, void* to, const void* from, int64_t bytes, cudaMemcpyKind direction) {
    CUDA_CHECK(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), direction, stream_));
    CUDA_CHECK(cudaEventRecord(chunk.done, stream_));
  }

  std::mutex mutex_;
  cudaStream_t stream_ = nullptr;
  Chunk chunks_[2];
  int turn_ = 0;
};

}  // namespace

void CopyToDevice(const void* host, void* device, int64_t bytes) {
  if (bytes == 0) return;
  if (bytes <= kSmall) {
    CUDA_CHECK(cudaMemcpy(device, host, static_cast<size_t>(bytes), cudaMemcpyHostToDevice));
  } else {
    Ferry::Get().ToDevice(static_cast<const char*>(host), static_cast<char*>(device), bytes);
  }
}

void CopyToHost(const void* device, void* host, int64_t bytes) {
  if (bytes == 0) return;
  if (bytes <= kSmall) {
    CUDA_CHECK(cudaMemcpy(host, device, static_cast<size_t>(bytes), cudaMemcpyDeviceToHost));
  } else {
    Ferry::Get().ToHost(static_cast<const char*>(device), static_cast<char*>(host), bytes);
  }
}

void Synchronize() {
  CUDA_CHECK(cudaDeviceSynchronize());
}

}  // namespace cuda
}  // namespace needle
