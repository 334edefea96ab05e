// The host's side of the API, and what the device has besides: each function throws if something is not as it should
// be.
#include "testing.h"

#include <cuda_fp16.h>
#include <cuda_profiler_api.h>
#include <math_constants.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

// ---- memory

TEST_FUNCTION(copies) {
  std::vector<int> host(100), back(100);
  std::iota(host.begin(), host.end(), 0);
  Device<int> a(host), b(100, 0);
  Check(cudaMemcpy(b.p, a.p, 400, cudaMemcpyDeviceToDevice));
  Check(cudaMemcpy(back.data(), b.p, 400, cudaMemcpyDefault));
  Expect(back == host, "device to device, and back by default");
  Check(cudaMemset(b.p, 0, 40));
  Expect(b.Get()[9] == 0 && b.Get()[10] == 10, "memset");
  Check(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyHostToDevice));
}

TEST_FUNCTION(rows) {  // a 3 x 4 corner of a 6 x 10 matrix, there and back
  std::vector<int> host(60), corner(12), back(60, -1);
  std::iota(host.begin(), host.end(), 0);
  size_t pitch;
  int* device;
  Check(cudaMallocPitch(&device, &pitch, 4 * sizeof(int), 3));
  Check(cudaMemcpy2D(device, pitch, host.data(), 10 * sizeof(int), 4 * sizeof(int), 3, cudaMemcpyHostToDevice));
  Check(cudaMemcpy2D(corner.data(), 4 * sizeof(int), device, pitch, 4 * sizeof(int), 3, cudaMemcpyDeviceToHost));
  Expect((corner == std::vector<int>{0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23}), "rows with a pitch");
  Check(cudaMemset2D(device, pitch, 0xff, 4 * sizeof(int), 2));
  Check(cudaMemcpy2DAsync(back.data(), 10 * sizeof(int), device, pitch, 4 * sizeof(int), 3, cudaMemcpyDeviceToHost,
                          nullptr));
  Expect(back[0] == -1 && back[20] == 20 && back[24] == -1, "rows set, and nothing between them touched");
  Check(cudaFree(device));
}

__global__ void AddOne(float* a) {
  a[threadIdx.x] += 1;
}

TEST_FUNCTION(memory_that_both_sides_use) {
  float *managed, *pinned;
  Check(cudaMallocManaged(&managed, 32 * sizeof(float)));
  Check(cudaMallocHost(&pinned, 32 * sizeof(float)));
  for (int i = 0; i < 32; i++) managed[i] = pinned[i] = i;
  AddOne<<<1, 32>>>(managed);
  AddOne<<<1, 32>>>(pinned);
  Finish();
  Expect(managed[31] == 32 && pinned[31] == 32, "managed and pinned memory");
  cudaPointerAttributes attributes;
  Check(cudaPointerGetAttributes(&attributes, pinned));
  Expect(attributes.type == cudaMemoryTypeHost, "pinned memory is the host's");
  Device<> device(32);
  Check(cudaMemcpyAsync(device.p, pinned, 128, cudaMemcpyHostToDevice, nullptr));
  Expect(device.Get()[31] == 32, "from pinned memory");
  Check(cudaFree(managed));
  Check(cudaFreeHost(pinned));
}

// run where there is one GB of addresses: 40 times 48 MB, a little of it alive
TEST_FUNCTION(addresses_come_back_when_all_have_been_used) {
  size_t before, after, total;
  Check(cudaMemGetInfo(&before, &total));
  Device<> kept(1000, 3.0f);
  float* p;
  for (int i = 0; i < 40; i++) {
    Check(cudaMalloc(&p, size_t{48} << 20));
    Check(cudaFree(p));
  }
  Expect(kept.Get() == std::vector<float>(1000, 3.0f), "what is alive stays as it is");
  Check(cudaMemGetInfo(&after, &total));
  Expect(before - after == 4000, "freed memory is free");
}

__constant__ float weights[3];
__device__ int counter;
__global__ void UseSymbols(float* out) {
  out[threadIdx.x] = weights[threadIdx.x];
  if (threadIdx.x == 0) counter++;
}
TEST_FUNCTION(symbols) {
  const std::vector<float> host = {1, 2, 4};
  Check(cudaMemcpyToSymbol(weights, host.data(), 3 * sizeof(float)));
  const int five = 5;
  Check(cudaMemcpyToSymbol(counter, &five, sizeof(int)));
  Device<> out(3);
  UseSymbols<<<1, 3>>>(out.p);
  Finish();
  int got = 0;
  Check(cudaMemcpyFromSymbol(&got, counter, sizeof(int)));
  Expect(out.Get() == host && got == 6, "symbols");
  void* address;
  Check(cudaGetSymbolAddress(&address, counter));
  Check(cudaMemset(address, 0, sizeof(int)));
  Check(cudaMemcpyFromSymbol(&got, counter, sizeof(int)));
  Expect(got == 0, "a symbol's address");
}

// ---- launches

__global__ void ManyBytes(float* out, int n) {
  extern __shared__ float s[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) s[i] = i;
  __syncthreads();
  if (threadIdx.x == 0) *out = s[n - 1];
}
TEST_FUNCTION(dynamic_memory_up_to_the_limit) {
  const int bytes = 227 * 1024, n = bytes / sizeof(float);
  Check(cudaFuncSetAttribute(ManyBytes, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  Device<> out(1);
  ManyBytes<<<1, 64, bytes>>>(out.p, n);
  Finish();
  Expect(out.Get()[0] == n - 1, "all the shared memory there is");
}
__global__ void Count(unsigned long long* total) {
  if (threadIdx.x == 0) atomicAdd(total, 1ull);
}
TEST_FUNCTION(many_blocks) {
  Device<unsigned long long> total(1, 0);
  Count<<<dim3(300, 5, 7), 2>>>(total.p);
  Finish();
  Expect(total.Get()[0] == 300 * 5 * 7, "every block runs once");
}

// as two inline functions of two headers would come to it
__global__ void ShufflesOfTwoFiles(float* out) {
  float v = threadIdx.x;
  v = threadIdx.x < 16 ? __shfl_sync(0xffffffffu, v, 0, 32, "one.cuh", 7)
                       : __shfl_sync(0xffffffffu, v, 0, 32, "two.cuh", 7);
  out[threadIdx.x] = v;
}
TEST_FUNCTION(one_line_of_two_files_is_two_places) {
  Device<> out(32);
  std::string said;
  try {
    ShufflesOfTwoFiles<<<1, 32>>>(out.p);
  } catch (const std::runtime_error& error) {
    said = error.what();
  }
  Expect(said.find("the warp diverges: lane 16") != std::string::npos &&
             said.find("__shfl_sync() at one.cuh:7") != std::string::npos,
         said);
}

// ---- streams, events, devices

TEST_FUNCTION(streams_and_events) {
  cudaStream_t stream;
  cudaEvent_t start, end;
  Check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  Check(cudaEventCreate(&start));
  Check(cudaEventCreateWithFlags(&end, cudaEventBlockingSync));
  Device<> a(32);
  Check(cudaEventRecord(start, stream));
  AddOne<<<1, 32, 0, stream>>>(a.p);
  Check(cudaEventRecord(end, stream));
  Check(cudaEventSynchronize(end));
  Check(cudaStreamWaitEvent(stream, end, 0));
  Check(cudaStreamSynchronize(stream));
  float milliseconds = -1;
  Check(cudaEventElapsedTime(&milliseconds, start, end));
  Expect(milliseconds >= 0 && a.Get()[0] == 2, "a stream and two events");
  Check(cudaEventDestroy(start));
  Check(cudaEventDestroy(end));
  Check(cudaStreamDestroy(stream));
}
TEST_FUNCTION(properties) {
  cudaDeviceProp p;
  int count = 0, size = 0;
  Check(cudaGetDeviceCount(&count));
  Check(cudaGetDeviceProperties(&p, 0));
  Check(cudaDeviceGetAttribute(&size, cudaDevAttrWarpSize, 0));
  Expect(count == 1 && size == 32 && p.warpSize == 32 && p.maxThreadsPerBlock == 1024, "limits");
  Expect(std::strstr(p.name, "emulator") != nullptr, "the name says that it is emulated");
}
TEST_FUNCTION(errors_have_names) {
  Expect(std::string(cudaGetErrorName(cudaErrorInvalidValue)) == "cudaErrorInvalidValue", "name");
  Expect(cudaGetLastError() == cudaSuccess && cudaPeekAtLastError() == cudaSuccess, "no error");
  int on_the_host;
  Expect(cudaFree(&on_the_host) == cudaErrorInvalidValue, "an error");
  Expect(cudaPeekAtLastError() == cudaErrorInvalidValue && cudaGetLastError() == cudaErrorInvalidValue, "is kept");
  Expect(cudaGetLastError() == cudaSuccess, "until it is asked for");
}

// ---- half precision

TEST_FUNCTION(every_half_is_itself) {
  for (unsigned bits = 0; bits < 65536; bits++) {
    const __half h = __ushort_as_half(static_cast<unsigned short>(bits));
    if (!__hisnan(h)) Expect(__half_as_ushort(__half(float(h))) == bits, "half " + std::to_string(bits));
  }
  Expect(__hisnan(__half(NAN)) && std::isnan(float(__half(NAN))), "not a number");
}
TEST_FUNCTION(halves_are_rounded_to_nearest_even) {
  // between two neighbours a and b: what lies nearer to a is a, the middle is the even one of the two
  for (unsigned bits = 0; bits < 0x7bff; bits++) {
    const float a = __half(__half_raw{static_cast<unsigned short>(bits)}),
                b = __half(__half_raw{static_cast<unsigned short>(bits + 1)});
    const float middle = (a + b) / 2;  // exact in float
    Expect(__half_as_ushort(__half(middle)) == bits + bits % 2, "middle above half " + std::to_string(bits));
    Expect(__half_as_ushort(__half(std::nextafterf(middle, 0.0f))) == bits, "below the middle");
    Expect(__half_as_ushort(__half(std::nextafterf(middle, 1e9f))) == bits + 1, "above the middle");
  }
  Expect(__half_as_ushort(__half(65519.0f)) == 0x7bff && __hisinf(__half(65520.0f)) == 1, "the largest");
  Expect(__half_as_ushort(__half(-0.0f)) == 0x8000 && __hisinf(__half(-INFINITY)) == -1, "signs");
}
__global__ void HalfAxpy(const __half* x, __half2* y, __half a) {
  const int i = threadIdx.x;
  y[i] = __hfma2(__half2half2(a), __halves2half2(x[2 * i], x[2 * i + 1]), y[i]);
  if (i == 0) y[0].x += __float2half(0.5f) * hsqrt(half(4));
}
TEST_FUNCTION(half_arithmetic_in_a_kernel) {
  Device<__half> x(std::vector<__half>{1, 2, 3, 4});
  Device<__half2> y(std::vector<__half2>{make_half2(0, 1), make_half2(2, 3)});
  HalfAxpy<<<1, 2>>>(x.p, y.p, __half(3));
  Finish();
  const std::vector<__half2> got = y.Get();
  Expect(float(got[0].x) == 4 && float(got[0].y) == 7 && __half22float2(got[1]).y == 15, "a x + y");
  Expect(__hlt(__half(1), __half(2)) && __hmax(__half(1), __half(2)) == __half(2), "compare");
}

// ---- functions of the device

__global__ void Functions_(float* f, int* i, long long* clock) {
  f[0] = rsqrtf(4), f[1] = __expf(0), f[2] = __saturatef(7), f[3] = __fdividef(1, 4), f[4] = max(CUDART_PI_F, 2.5f),
  f[5] = __ldg(&f[0]);
  i[0] = __popc(0xff), i[1] = __clz(1), i[2] = __ffs(8), i[3] = __brev(1) == 0x80000000u, i[4] = __float_as_int(1.0f);
  i[5] = __umulhi(0x80000000u, 4u), i[6] = __float2int_rn(2.5f), i[7] = min(3, 2);
  clock[0] = clock64();
  for (volatile int k = 0; k < 1000; k++) {
  }
  clock[1] = clock64();
  float4 v = make_float4(1, 2, 3, 4);
  f[6] = v.x + v.w;
}
TEST_FUNCTION(device_functions) {
  Device<> f(7);
  Device<int> i(8);
  Device<long long> clock(2, 0);
  Functions_<<<1, 1>>>(f.p, i.p, clock.p);
  Finish();
  Expect((f.Get() == std::vector<float>{0.5f, 1, 1, 0.25f, CUDART_PI_F, 0.5f, 5}), "floating point");
  Expect((i.Get() == std::vector<int>{8, 31, 4, 1, 0x3f800000, 2, 2, 2}), "integers");
  Expect(clock.Get()[1] > clock.Get()[0], "a clock that goes");
  Expect(sizeof(float3) == 12 && alignof(float4) == 16 && alignof(uchar4) == 4, "vectors");
}

// ---- for the tests of the profile

__global__ void Strided(const float* a, float* out, int stride) {
  out[threadIdx.x] = a[threadIdx.x * stride];  // here: strided
}
__global__ void Column(float* out) {
  __shared__ float tile[32][32];
  tile[threadIdx.x][0] = threadIdx.x;  // here: column
  tile[0][threadIdx.x] = threadIdx.x;  // here: row
  __syncthreads();
  out[threadIdx.x] = tile[0][0];
}
TEST_FUNCTION(profiled) {
  Device<> a(1024), out(32);
  Strided<<<1, 32>>>(a.p, out.p, 32);
  Strided<<<1, 32>>>(a.p, out.p, 32);
  Column<<<1, 32>>>(out.p);
  cudaGetLastError();
  Check(cudaProfilerStop());
}
