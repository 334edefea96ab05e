// The host's side of the API, but for allocation (arena.cc) and errors (errors.cc).
#include "../include/cuda_emu/api.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "arena.h"
#include "checks.h"
#include "errors.h"
#include "options.h"
#include "worker.h"

using namespace cuda_emu;

// ---- copies

namespace {

constexpr size_t kTotalBytes = size_t{8} << 30;

std::vector<std::pair<const char*, size_t>> symbols;  // __device__ variables whose address somebody asked for

bool InSymbol(const void* pointer) {
  const auto* p = static_cast<const char*>(pointer);
  return std::any_of(symbols.begin(), symbols.end(),
                     [p](const auto& symbol) { return p >= symbol.first && p < symbol.first + symbol.second; });
}

/// One end of a copy: host memory (no allocation) or a part of a device array.
struct End {
  char* pointer;
  Allocation* allocation = nullptr;

  size_t offset() const { return static_cast<size_t>(pointer - allocation->base); }
  void Open() const {
    if (allocation != nullptr) cuda_emu::Open(*allocation);
  }
  void Close() const {
    if (allocation != nullptr) cuda_emu::Close(*allocation);
  }
};

cudaError_t CheckEnd(const std::string& what, const void* pointer, size_t bytes, bool device_wanted, End* end) {
  end->pointer = static_cast<char*>(const_cast<void*>(pointer));
  if (InSymbol(pointer)) return cudaSuccess;
  Allocation* allocation = FindAllocation(pointer);
  const bool is_device = InArena(pointer);
  const bool either = allocation != nullptr && allocation->kind != MemoryKind::kDevice;
  if (pointer == nullptr) return SetError(cudaErrorInvalidValue, what + " is a null pointer");
  if (device_wanted != is_device && !either) {
    return SetError(cudaErrorInvalidValue, what + " is " + (is_device ? "device" : "host") +
                                               " memory, but the direction of the copy says " +
                                               (device_wanted ? "device" : "host"));
  }
  if (!is_device) return cudaSuccess;
  if (allocation == nullptr) allocation = FindNeighbour(pointer);
  if (allocation == nullptr || !allocation->live || !allocation->Contains(pointer, bytes)) {
    return SetError(cudaErrorInvalidValue,
                    what + ", " + Count(bytes, "byte") + " from " +
                        (allocation == nullptr ? Hex(pointer) : ElementText(*allocation, pointer)) +
                        " on, is outside: " + (allocation == nullptr ? "no array is near" : ExtentText(*allocation)));
  }
  end->allocation = allocation;
  return cudaSuccess;
}

// Which ends are on the device; false for a direction that does not exist.
bool ReadDirection(cudaMemcpyKind kind, const void* destination, const void* source, bool* to_device,
                   bool* from_device) {
  *to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  *from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (kind == cudaMemcpyDefault) {
    *to_device = InArena(destination);
    *from_device = InArena(source);
  }
  return kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault;
}

void Move(const End& to, const End& from, size_t bytes) {
  std::memmove(to.pointer, from.pointer, bytes);
  if (to.allocation != nullptr && from.allocation != nullptr) {
    checks->Copied(*to.allocation, to.offset(), *from.allocation, from.offset(), bytes);
  } else if (to.allocation != nullptr) {
    checks->HostWrote(*to.allocation, to.offset(), bytes);
  }
}

// `height` rows of `width` bytes.
cudaError_t CopyRows(const char* call, void* destination, size_t destination_pitch, const void* source,
                     size_t source_pitch, size_t width, size_t height, cudaMemcpyKind kind) {
  Initialize();
  std::lock_guard<std::mutex> lock(api_mutex);
  if (HasStuckError()) return LastError();
  if (width == 0 || height == 0) return cudaSuccess;
  bool to_device, from_device;
  if (!ReadDirection(kind, destination, source, &to_device, &from_device)) {
    return SetError(cudaErrorInvalidMemcpyDirection,
                    std::string(call) + ": there is no direction " + std::to_string(kind));
  }
  End to, from;
  cudaError_t error = CheckEnd(std::string(call) + ": the destination", destination,
                               (height - 1) * destination_pitch + width, to_device, &to);
  if (error == cudaSuccess) {
    error =
        CheckEnd(std::string(call) + ": the source", source, (height - 1) * source_pitch + width, from_device, &from);
  }
  if (error != cudaSuccess) return error;
  to.Open();
  from.Open();
  for (size_t row = 0; row < height; row++) {
    Move(to, from, width);
    to.pointer += destination_pitch;
    from.pointer += source_pitch;
  }
  to.Close();
  from.Close();
  return cudaSuccess;
}

cudaError_t SetRows(const char* call, void* pointer, size_t pitch, int value, size_t width, size_t height) {
  Initialize();
  std::lock_guard<std::mutex> lock(api_mutex);
  if (HasStuckError()) return LastError();
  if (width == 0 || height == 0) return cudaSuccess;
  End to;
  const cudaError_t error =
      CheckEnd(std::string(call) + ": the destination", pointer, (height - 1) * pitch + width, true, &to);
  if (error != cudaSuccess) return error;
  to.Open();
  for (size_t row = 0; row < height; row++, to.pointer += pitch) {
    std::memset(to.pointer, value, width);
    if (to.allocation != nullptr) checks->HostWrote(*to.allocation, to.offset(), width);
  }
  to.Close();
  return cudaSuccess;
}

}  // namespace

cudaError_t cudaMemcpy(void* destination, const void* source, size_t bytes, cudaMemcpyKind kind) {
  return CopyRows("cudaMemcpy", destination, bytes, source, bytes, bytes, 1, kind);
}

cudaError_t cudaMemcpy2D(void* destination, size_t destination_pitch, const void* source, size_t source_pitch,
                         size_t width, size_t height, cudaMemcpyKind kind) {
  if (width > destination_pitch || width > source_pitch) {
    return SetError(cudaErrorInvalidPitchValue, "cudaMemcpy2D: rows of " + Count(width, "byte") +
                                                    " are wider than a pitch (" + std::to_string(destination_pitch) +
                                                    ", " + std::to_string(source_pitch) + ")");
  }
  return CopyRows("cudaMemcpy2D", destination, destination_pitch, source, source_pitch, width, height, kind);
}

cudaError_t cudaMemset(void* pointer, int value, size_t bytes) {
  return SetRows("cudaMemset", pointer, bytes, value, bytes, 1);
}

cudaError_t cudaMemset2D(void* pointer, size_t pitch, int value, size_t width, size_t height) {
  return SetRows("cudaMemset2D", pointer, pitch, value, width, height);
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  Initialize();
  *total = kTotalBytes;
  *free = kTotalBytes - std::min(kTotalBytes, LiveBytes());
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  Initialize();
  constexpr cudaMemoryType kTypes[] = {cudaMemoryTypeDevice, cudaMemoryTypeManaged, cudaMemoryTypeHost};
  const Allocation* allocation = FindAllocation(pointer);
  *attributes = {cudaMemoryTypeUnregistered, 0, nullptr, nullptr};
  if (allocation == nullptr || !allocation->live) return cudaSuccess;
  attributes->type = kTypes[static_cast<int>(allocation->kind)];
  attributes->devicePointer = const_cast<void*>(pointer);
  if (allocation->kind != MemoryKind::kDevice) attributes->hostPointer = const_cast<void*>(pointer);
  return cudaSuccess;
}

namespace cuda_emu {

static cudaError_t CheckSymbol(const char* call, size_t size, size_t bytes, size_t offset) {
  if (offset <= size && bytes <= size - offset) return cudaSuccess;
  return SetError(cudaErrorInvalidValue, std::string(call) + ": " + Count(bytes, "byte") + " at offset " +
                                             std::to_string(offset) + " of a variable of " + Count(size, "byte"));
}

cudaError_t CopyToSymbol(void* symbol, size_t size, const void* source, size_t bytes, size_t offset,
                         cudaMemcpyKind kind) {
  if (cudaError_t error = CheckSymbol("cudaMemcpyToSymbol", size, bytes, offset)) return error;
  RegisterSymbol(symbol, size);
  return cudaMemcpy(static_cast<char*>(symbol) + offset, source, bytes, kind);
}

cudaError_t CopyFromSymbol(void* destination, const void* symbol, size_t size, size_t bytes, size_t offset,
                           cudaMemcpyKind kind) {
  if (cudaError_t error = CheckSymbol("cudaMemcpyFromSymbol", size, bytes, offset)) return error;
  RegisterSymbol(symbol, size);
  return cudaMemcpy(destination, static_cast<const char*>(symbol) + offset, bytes, kind);
}

void RegisterSymbol(const void* symbol, size_t size) {
  std::lock_guard<std::mutex> lock(api_mutex);
  if (!InSymbol(symbol)) symbols.emplace_back(static_cast<const char*>(symbol), size);
}

}  // namespace cuda_emu

// ---- devices

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (device == 0) return cudaSuccess;
  return SetError(cudaErrorInvalidDevice,
                  "cudaSetDevice: " + std::to_string(device) + "; the emulator has device 0 alone");
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDA_VERSION;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  Initialize();
  if (device != 0) return cudaSetDevice(device);
  cudaDeviceProp p{};
  std::snprintf(p.name, sizeof(p.name), "CUDA emulator on the CPU");
  p.totalGlobalMem = kTotalBytes;
  p.totalConstMem = 64 << 10;
  p.sharedMemPerBlock = kStaticSharedBytes;
  p.sharedMemPerBlockOptin = kMostSharedBytes;
  p.sharedMemPerMultiprocessor = kMostSharedBytes + 1024;
  p.warpSize = kWarpSize;
  p.maxThreadsPerBlock = kMaxThreads;
  p.maxThreadsPerMultiProcessor = 2 * kMaxThreads;
  p.multiProcessorCount = options.workers;
  p.regsPerBlock = 65536;
  p.major = 9;
  p.integrated = p.unifiedAddressing = p.managedMemory = p.canMapHostMemory = 1;
  p.maxThreadsDim[0] = p.maxThreadsDim[1] = kMaxThreads;
  p.maxThreadsDim[2] = 64;
  p.maxGridSize[0] = 2147483647;
  p.maxGridSize[1] = p.maxGridSize[2] = 65535;
  *properties = p;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  cudaDeviceProp p;
  if (cudaError_t error = cudaGetDeviceProperties(&p, device)) return error;
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
      *value = p.maxThreadsPerBlock;
      return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      *value = static_cast<int>(p.sharedMemPerBlock);
      return cudaSuccess;
    case cudaDevAttrWarpSize:
      *value = p.warpSize;
      return cudaSuccess;
    case cudaDevAttrMultiProcessorCount:
      *value = p.multiProcessorCount;
      return cudaSuccess;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      *value = p.maxThreadsPerMultiProcessor;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
      *value = p.major;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
      *value = p.minor;
      return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = static_cast<int>(p.sharedMemPerBlockOptin);
      return cudaSuccess;
  }
  return SetError(cudaErrorInvalidValue,
                  "cudaDeviceGetAttribute: the emulator does not know attribute " + std::to_string(attribute));
}

// ---- streams and events

struct CUstream_st {};
struct CUevent_st {
  double seconds = -1;  // negative: not recorded yet
};

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new CUstream_st;
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t) {
  return cudaDeviceSynchronize();
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CUevent_st;
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  if (event == nullptr) return SetError(cudaErrorInvalidResourceHandle, "cudaEventRecord: the event was not created");
  event->seconds = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  if (start == nullptr || end == nullptr || start->seconds < 0 || end->seconds < 0) {
    return SetError(cudaErrorInvalidResourceHandle, "cudaEventElapsedTime: an event was not recorded");
  }
  static bool said = false;
  if (!said) {
    std::fprintf(
        stderr,
        "[cuda_emu] cudaEventElapsedTime: emulated; this is the time of the CPU, and says nothing about a GPU\n");
  }
  said = true;
  *milliseconds = static_cast<float>((end->seconds - start->seconds) * 1e3);
  return cudaSuccess;
}

cudaError_t cudaProfilerStart() {
  return cudaSuccess;
}

cudaError_t cudaProfilerStop() {
  checks->ProfileEnds();
  return cudaSuccess;
}
