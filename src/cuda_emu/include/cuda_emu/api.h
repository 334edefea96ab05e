// The part of the CUDA runtime API that runs on the host: errors, memory, copies, streams, events, devices.  Everything
// is synchronous: when a call returns, its work is done.
#ifndef CUDA_EMU_API_H_
#define CUDA_EMU_API_H_

#include <cstddef>

#include "launch.h"

enum cudaError {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorInvalidPitchValue = 12,
  cudaErrorInvalidSymbol = 13,
  cudaErrorInvalidMemcpyDirection = 21,
  cudaErrorInsufficientDriver = 35,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorNotReady = 600,
  cudaErrorIllegalAddress = 700,  // from here on an error stays until the process ends
  cudaErrorLaunchOutOfResources = 701,
  cudaErrorLaunchTimeout = 702,
  cudaErrorAssert = 710,
  cudaErrorMisalignedAddress = 716,
  cudaErrorLaunchFailure = 719,
  cudaErrorNotSupported = 801,
  cudaErrorUnknown = 999,
};
typedef enum cudaError cudaError_t;

enum cudaMemcpyKind {
  cudaMemcpyHostToHost = 0,
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
  cudaMemcpyDefault = 4
};

struct CUevent_st;
typedef CUevent_st* cudaEvent_t;
typedef void (*cudaHostFn_t)(void*);

enum {
  cudaStreamDefault = 0,
  cudaStreamNonBlocking = 1,
  cudaEventDefault = 0,
  cudaEventBlockingSync = 1,
  cudaEventDisableTiming = 2,
  cudaHostAllocDefault = 0,
  cudaHostAllocPortable = 1,
  cudaHostAllocMapped = 2,
  cudaMemAttachGlobal = 1,
};
enum cudaFuncAttribute {
  cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
  cudaFuncAttributePreferredSharedMemoryCarveout = 9
};
enum cudaDeviceAttr {
  cudaDevAttrMaxThreadsPerBlock = 1,
  cudaDevAttrMaxSharedMemoryPerBlock = 8,
  cudaDevAttrWarpSize = 10,
  cudaDevAttrMultiProcessorCount = 16,
  cudaDevAttrMaxThreadsPerMultiProcessor = 39,
  cudaDevAttrComputeCapabilityMajor = 75,
  cudaDevAttrComputeCapabilityMinor = 76,
  cudaDevAttrMaxSharedMemoryPerBlockOptin = 97
};
enum cudaMemoryType {
  cudaMemoryTypeUnregistered = 0,
  cudaMemoryTypeHost = 1,
  cudaMemoryTypeDevice = 2,
  cudaMemoryTypeManaged = 3
};

struct cudaDeviceProp {
  char name[256];
  size_t totalGlobalMem, totalConstMem, sharedMemPerBlock, sharedMemPerBlockOptin, sharedMemPerMultiprocessor;
  int warpSize, maxThreadsPerBlock, maxThreadsPerMultiProcessor, multiProcessorCount, regsPerBlock;
  int major, minor, l2CacheSize, memoryBusWidth, concurrentKernels, asyncEngineCount;
  int integrated, unifiedAddressing, managedMemory, canMapHostMemory;
  int maxThreadsDim[3], maxGridSize[3];
};
struct cudaPointerAttributes {
  cudaMemoryType type;
  int device;
  void *devicePointer, *hostPointer;
};

extern "C" {
// ---- errors.  The text says what went wrong in this very call, if that is known.
CUDA_EMU_API const char* cudaGetErrorString(cudaError_t error);
CUDA_EMU_API const char* cudaGetErrorName(cudaError_t error);
CUDA_EMU_API cudaError_t cudaGetLastError();
CUDA_EMU_API cudaError_t cudaPeekAtLastError();

// ---- devices: there is one
CUDA_EMU_API cudaError_t cudaGetDeviceCount(int* count);
CUDA_EMU_API cudaError_t cudaGetDevice(int* device);
CUDA_EMU_API cudaError_t cudaSetDevice(int device);
CUDA_EMU_API cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
CUDA_EMU_API cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);
CUDA_EMU_API cudaError_t cudaDriverGetVersion(int* version);
CUDA_EMU_API cudaError_t cudaRuntimeGetVersion(int* version);
CUDA_EMU_API cudaError_t cudaDeviceSynchronize();
CUDA_EMU_API cudaError_t cudaDeviceReset();

// ---- memory and copies
CUDA_EMU_API cudaError_t cudaMemGetInfo(size_t* free, size_t* total);
CUDA_EMU_API cudaError_t cudaFree(void* pointer);
CUDA_EMU_API cudaError_t cudaFreeHost(void* pointer);
CUDA_EMU_API cudaError_t cudaMemcpy(void* destination, const void* source, size_t bytes, cudaMemcpyKind kind);
CUDA_EMU_API cudaError_t cudaMemcpy2D(void* destination, size_t destination_pitch, const void* source,
                                      size_t source_pitch, size_t width, size_t height, cudaMemcpyKind kind);
CUDA_EMU_API cudaError_t cudaMemset(void* pointer, int value, size_t bytes);
CUDA_EMU_API cudaError_t cudaMemset2D(void* pointer, size_t pitch, int value, size_t width, size_t height);
CUDA_EMU_API cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer);

// ---- streams and events.  An event's time is the CPU's, and the first use of one says so.
CUDA_EMU_API cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
CUDA_EMU_API cudaError_t cudaStreamDestroy(cudaStream_t stream);
CUDA_EMU_API cudaError_t cudaStreamSynchronize(cudaStream_t stream);
CUDA_EMU_API cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
CUDA_EMU_API cudaError_t cudaEventDestroy(cudaEvent_t event);
CUDA_EMU_API cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr);
CUDA_EMU_API cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end);

// ---- profile of the check build
CUDA_EMU_API cudaError_t cudaProfilerStart();
CUDA_EMU_API cudaError_t cudaProfilerStop();
}

namespace cuda_emu {

enum class MemoryKind { kDevice, kManaged, kPinned };  // the host may use the last two

CUDA_EMU_API cudaError_t Allocate(void** pointer, size_t bytes, MemoryKind kind);
CUDA_EMU_API cudaError_t AllowDynamicShared(int bytes);
CUDA_EMU_API cudaError_t CopyToSymbol(void* symbol, size_t size, const void* source, size_t bytes, size_t offset,
                                      cudaMemcpyKind kind);
CUDA_EMU_API cudaError_t CopyFromSymbol(void* destination, const void* symbol, size_t size, size_t bytes, size_t offset,
                                        cudaMemcpyKind kind);
CUDA_EMU_API void RegisterSymbol(const void* symbol, size_t size);

}  // namespace cuda_emu

template <class T>
inline cudaError_t cudaMalloc(T** pointer, size_t bytes) {
  return ::cuda_emu::Allocate(reinterpret_cast<void**>(pointer), bytes, ::cuda_emu::MemoryKind::kDevice);
}
template <class T>
inline cudaError_t cudaMallocAsync(T** pointer, size_t bytes, cudaStream_t) {
  return cudaMalloc(pointer, bytes);
}
template <class T>
inline cudaError_t cudaMallocManaged(T** pointer, size_t bytes, unsigned = cudaMemAttachGlobal) {
  return ::cuda_emu::Allocate(reinterpret_cast<void**>(pointer), bytes, ::cuda_emu::MemoryKind::kManaged);
}
template <class T>
inline cudaError_t cudaMallocHost(T** pointer, size_t bytes) {
  return ::cuda_emu::Allocate(reinterpret_cast<void**>(pointer), bytes, ::cuda_emu::MemoryKind::kPinned);
}
template <class T>
inline cudaError_t cudaHostAlloc(T** pointer, size_t bytes, unsigned) {
  return cudaMallocHost(pointer, bytes);
}
template <class T>
inline cudaError_t cudaMallocPitch(T** pointer, size_t* pitch, size_t width, size_t height) {
  *pitch = (width + 511) / 512 * 512;
  return cudaMalloc(pointer, *pitch * height);
}
inline cudaError_t cudaFreeAsync(void* pointer, cudaStream_t) {
  return cudaFree(pointer);
}
inline cudaError_t cudaMemcpyAsync(void* destination, const void* source, size_t bytes, cudaMemcpyKind kind,
                                   cudaStream_t = nullptr) {
  return cudaMemcpy(destination, source, bytes, kind);
}
inline cudaError_t cudaMemcpy2DAsync(void* destination, size_t destination_pitch, const void* source,
                                     size_t source_pitch, size_t width, size_t height, cudaMemcpyKind kind,
                                     cudaStream_t = nullptr) {
  return cudaMemcpy2D(destination, destination_pitch, source, source_pitch, width, height, kind);
}
inline cudaError_t cudaMemsetAsync(void* pointer, int value, size_t bytes, cudaStream_t = nullptr) {
  return cudaMemset(pointer, value, bytes);
}

// ---- __constant__ and __device__ variables

template <class T>
inline cudaError_t cudaMemcpyToSymbol(T& symbol, const void* source, size_t bytes, size_t offset = 0,
                                      cudaMemcpyKind kind = cudaMemcpyHostToDevice) {
  return ::cuda_emu::CopyToSymbol((void*)&symbol, sizeof(T), source, bytes, offset, kind);
}
template <class T>
inline cudaError_t cudaMemcpyFromSymbol(void* destination, const T& symbol, size_t bytes, size_t offset = 0,
                                        cudaMemcpyKind kind = cudaMemcpyDeviceToHost) {
  return ::cuda_emu::CopyFromSymbol(destination, &symbol, sizeof(T), bytes, offset, kind);
}
template <class T>
inline cudaError_t cudaGetSymbolAddress(void** pointer, const T& symbol) {
  ::cuda_emu::RegisterSymbol(&symbol, sizeof(T));
  *pointer = const_cast<void*>(static_cast<const void*>(&symbol));
  return cudaSuccess;
}

// ---- kernels' attributes

template <class Kernel>
inline cudaError_t cudaFuncSetAttribute(Kernel*, cudaFuncAttribute attribute, int value) {
  return attribute == cudaFuncAttributeMaxDynamicSharedMemorySize ? ::cuda_emu::AllowDynamicShared(value) : cudaSuccess;
}
template <class Kernel>
inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Kernel, int block_size, size_t) {
  *blocks = 2048 / (block_size > 0 ? block_size : 1);
  return cudaSuccess;
}
template <class Kernel>
inline cudaError_t cudaOccupancyMaxPotentialBlockSize(int* min_grid_size, int* block_size, Kernel, size_t = 0,
                                                      int limit = 0) {
  *block_size = limit > 0 && limit < 256 ? limit : 256;
  *min_grid_size = 1;
  return cudaSuccess;
}

// ---- streams and events, the short forms

inline cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}
inline cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return cudaStreamSynchronize(stream);
}
inline cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned = 0) {
  return cudaSuccess;
}
inline cudaError_t cudaLaunchHostFunc(cudaStream_t, cudaHostFn_t function, void* data) {
  function(data);
  return cudaSuccess;
}
inline cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}
inline cudaError_t cudaEventSynchronize(cudaEvent_t) {
  return cudaDeviceSynchronize();
}
inline cudaError_t cudaEventQuery(cudaEvent_t) {
  return cudaDeviceSynchronize();
}

#endif  // CUDA_EMU_API_H_
