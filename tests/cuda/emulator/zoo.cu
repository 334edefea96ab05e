// Mistakes that people make in CUDA, one a function. Each must be reported in words, with kernel, line, block and
// thread; none may hang or end the process. test_zoo.py says what each report must hold; `here:` marks the line it must
// name.
#include "testing.h"

#include <cooperative_groups.h>
#include <cassert>

namespace cg = cooperative_groups;

// ---- reads and writes outside of an array

__global__ void Copy(const float* a, float* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float value = a[i];  // here: read
  out[i] = value;      // here: write
}
TEST_FUNCTION(read_past_the_end) {
  Device<> a(1000), out(1024);
  Copy<<<4, 256>>>(a.p, out.p);
  Finish();
}
TEST_FUNCTION(write_past_the_end) {
  Device<> a(1024), out(1000);
  Copy<<<4, 256>>>(a.p, out.p);
  Finish();
}

__global__ void Shift(const float* a, float* out) {
  int i = threadIdx.x;
  out[i] = a[i - 1];  // here: negative
}
TEST_FUNCTION(negative_index) {
  Device<> a(256), out(256);
  Shift<<<1, 256>>>(a.p, out.p);
  Finish();
}

__global__ void CopyDoubles(const double* from, double* to) {
  to[threadIdx.x] = from[threadIdx.x];  // here: doubles
}
TEST_FUNCTION(past_the_end_of_doubles) {
  Device<double> from(100), to(128);
  CopyDoubles<<<1, 128>>>(from.p, to.p);
  Finish();
}

__global__ void Transposed(const float* a, float* out, int rows, int columns) {
  int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < rows && j < columns) out[j * columns + i] = a[i * columns + j];  // here: transposed
}
TEST_FUNCTION(wrong_stride) {
  Device<> a(8 * 24), out(8 * 24);
  Transposed<<<dim3(3, 1), dim3(8, 8)>>>(a.p, out.p, 8, 24);
  Finish();
}

__global__ void AddAtomically(float* total, int i) {
  atomicAdd(&total[i], 1.0f);  // here: atomic
}
TEST_FUNCTION(atomic_past_the_end) {
  Device<> total(1);
  AddAtomically<<<1, 32>>>(total.p, 1);
  Finish();
}

// ---- pointers of the wrong kind

TEST_FUNCTION(use_after_free) {
  float* freed;
  {
    Device<> a(256);
    freed = a.p;
  }
  Device<> out(256);
  Copy<<<1, 256>>>(freed, out.p);
  Finish();
}
TEST_FUNCTION(host_pointer_in_kernel) {
  std::vector<float> host(256);
  Device<> out(256);
  Copy<<<1, 256>>>(host.data(), out.p);
  Finish();
}
TEST_FUNCTION(null_pointer) {
  Device<> out(256);
  Copy<<<1, 256>>>(nullptr, out.p);
  Finish();
}
TEST_FUNCTION(device_pointer_on_host) {  // ends the process, with a message
  Device<> a(256);
  volatile float value = a.p[3];  // here: host
  static_cast<void>(value);
}

__global__ void ShareLocal(float* out) {
  __shared__ float* p;
  float mine = threadIdx.x;
  if (threadIdx.x == 0) p = &mine;
  __syncthreads();
  out[threadIdx.x] = *p;  // here: local
}
TEST_FUNCTION(local_variable_of_another_thread) {
  Device<> out(64);
  ShareLocal<<<1, 64>>>(out.p);
  Finish();
}

// ---- calls of the API

TEST_FUNCTION(copy_too_long) {
  Device<> a(256);
  std::vector<float> host(512);
  Check(cudaMemcpy(host.data(), a.p, 512 * sizeof(float), cudaMemcpyDeviceToHost));
}
TEST_FUNCTION(copy_in_elements_from_the_middle) {
  Device<> a(256);
  std::vector<float> host(256);
  Check(cudaMemcpy(a.p + 200, host.data(), 100 * sizeof(float), cudaMemcpyHostToDevice));
}
TEST_FUNCTION(copy_in_the_wrong_direction) {
  Device<> a(256);
  std::vector<float> host(256);
  Check(cudaMemcpy(host.data(), a.p, 256 * sizeof(float), cudaMemcpyHostToDevice));
}
TEST_FUNCTION(copy_in_no_direction) {
  Device<> a(4), b(4);
  Check(cudaMemcpy(a.p, b.p, 16, static_cast<cudaMemcpyKind>(7)));
}
TEST_FUNCTION(copy_to_null) {
  Device<> a(4);
  Check(cudaMemcpy(nullptr, a.p, 16, cudaMemcpyDeviceToHost));
}
TEST_FUNCTION(rows_wider_than_their_pitch) {
  Device<> a(64);
  std::vector<float> host(64);
  Check(cudaMemcpy2D(host.data(), 16, a.p, 32, 32, 4, cudaMemcpyDeviceToHost));
}
TEST_FUNCTION(set_too_much) {
  Device<> a(256);
  Check(cudaMemset(a.p, 0, 256 * sizeof(double)));
}
TEST_FUNCTION(free_twice) {
  float* p;
  Check(cudaMalloc(&p, 4));
  Check(cudaFree(p));
  Check(cudaFree(p));
}
TEST_FUNCTION(free_of_a_part) {
  Device<> a(256);
  Check(cudaFree(a.p + 1));
}
TEST_FUNCTION(free_of_host_memory) {
  std::vector<float> host(4);
  Check(cudaFree(host.data()));
}
__constant__ float coefficients[4];
TEST_FUNCTION(constant_too_small) {
  std::vector<float> host(8);
  Check(cudaMemcpyToSymbol(coefficients, host.data(), 8 * sizeof(float)));
}
TEST_FUNCTION(no_such_device) {
  Check(cudaSetDevice(1));
}
TEST_FUNCTION(out_of_memory) {
  float* p;
  Check(cudaMalloc(&p, size_t{1} << 50));
}

// ---- launches

TEST_FUNCTION(block_too_large) {
  Device<> a(4096), out(4096);
  Copy<<<1, 2048>>>(a.p, out.p);  // here: large
  Finish();
}
TEST_FUNCTION(block_too_deep) {
  Device<> a(4096), out(4096);
  Copy<<<1, dim3(1, 1, 128)>>>(a.p, out.p);
  Finish();
}
TEST_FUNCTION(empty_grid) {
  Device<> a(1), out(1);
  Copy<<<0, 256>>>(a.p, out.p);
  Finish();
}
TEST_FUNCTION(grid_too_high) {
  Device<> a(1), out(1);
  Copy<<<dim3(1, 70000), 1>>>(a.p, out.p);
  Finish();
}

// ---- what was never written

TEST_FUNCTION(unwritten_array) {
  Device<> a(256, Device<>::Unwritten()), out(256);
  Copy<<<1, 256>>>(a.p, out.p);
  Finish();
}
__global__ void HalfWritten(float* a) {
  __shared__ float half[256];
  int t = threadIdx.x;
  if (t < 128) half[t] = 1;
  __syncthreads();
  a[t] = half[t];  // here: half
}
TEST_FUNCTION(unwritten_shared) {
  Device<> a(256);
  HalfWritten<<<1, 256>>>(a.p);
  Finish();
}

// ---- races

__global__ void Reverse(float* a) {
  __shared__ float s[256];
  int t = threadIdx.x;
  s[t] = a[t];        // here: reverse write
  a[t] = s[255 - t];  // here: reverse read
}
TEST_FUNCTION(missing_barrier) {
  Device<> a(256);
  Reverse<<<1, 256>>>(a.p);
  Finish();
}
__global__ void Sum(const float* a, float* out) {
  __shared__ float s[256];
  int t = threadIdx.x;
  s[t] = a[t];
  __syncthreads();
  for (int k = 128; k > 0; k /= 2) {
    if (t < k) s[t] += s[t + k];  // here: sum
  }
  __syncthreads();
  if (t == 0) *out = s[0];
}
TEST_FUNCTION(missing_barrier_in_a_reduction) {
  Device<> a(256), out(1);
  Sum<<<1, 256>>>(a.p, out.p);
  Finish();
}
__global__ void Tiles(const float* a, float* out, int n) {
  __shared__ float tile[64];
  int t = threadIdx.x;
  float sum = 0;
  for (int k = 0; k < n; k += 64) {
    tile[t] = a[k + t];  // here: tile write
    __syncthreads();
    for (int j = 0; j < 64; j++) sum += tile[j];  // here: tile read
  }
  out[t] = sum;
}
TEST_FUNCTION(missing_second_barrier_of_a_loop) {
  Device<> a(256), out(64);
  Tiles<<<1, 64>>>(a.p, out.p, 256);
  Finish();
}
__global__ void WarpSum(const float* a, float* out) {  // as before Volta, when the lanes of a warp ran in step
  __shared__ volatile float s[64];
  int t = threadIdx.x;
  s[t] = a[t];
  s[t + 32] = a[t + 32];
  for (int k = 32; k > 0; k /= 2) {
    if (t < k) s[t] = s[t] + s[t + k];  // here: warp sum
  }
  if (t == 0) *out = s[0];
}
TEST_FUNCTION(warp_without_syncwarp) {
  Device<> a(64), out(1);
  WarpSum<<<1, 32>>>(a.p, out.p);
  Finish();
}
__global__ void Total(const float* a, float* total) {
  *total += a[blockIdx.x * blockDim.x + threadIdx.x];  // here: total
}
TEST_FUNCTION(missing_atomic) {
  Device<> a(512), total(1);
  Total<<<2, 256>>>(a.p, total.p);
  Finish();
}
__global__ void HalfAtomic(float* total) {
  if (threadIdx.x % 2) {
    atomicAdd(total, 1.0f);
  } else {
    *total += 1.0f;  // here: half atomic
  }
}
TEST_FUNCTION(atomic_and_plain) {
  Device<> total(1);
  HalfAtomic<<<1, 32>>>(total.p);
  Finish();
}
__global__ void Neighbours(float* a) {
  if (threadIdx.x == 0) a[blockIdx.x] = 2 * a[(blockIdx.x + 1) % gridDim.x];  // here: neighbours
}
TEST_FUNCTION(race_between_blocks) {
  Device<> a(8);
  Neighbours<<<8, 32>>>(a.p);
  Finish();
}
__global__ void Smooth(float* a) {
  int t = threadIdx.x;
  if (t < 255) a[t] = a[t] + a[t + 1];  // here: smooth
}
TEST_FUNCTION(stencil_in_place) {
  Device<> a(256);
  Smooth<<<1, 256>>>(a.p);
  Finish();
}
__global__ void DynamicReverse(float* a) {
  extern __shared__ float s[];
  s[threadIdx.x] = a[threadIdx.x];
  a[threadIdx.x] = s[blockDim.x - 1 - threadIdx.x];  // here: dynamic
}
TEST_FUNCTION(missing_barrier_with_dynamic_memory) {
  Device<> a(64);
  DynamicReverse<<<1, 64, 64 * sizeof(float)>>>(a.p);
  Finish();
}

// ---- barriers

__global__ void EarlyReturn(float* a, int n) {
  __shared__ float s[256];
  int t = threadIdx.x;
  if (t >= n) return;
  s[t] = a[t];
  __syncthreads();  // here: early
  a[t] = s[n - 1 - t];
}
TEST_FUNCTION(return_before_a_barrier) {
  Device<> a(256);
  EarlyReturn<<<1, 256>>>(a.p, 200);
  Finish();
}
__global__ void TwoBarriers(float* a) {
  if (threadIdx.x < 32) {
    __syncthreads();  // here: first of two
  } else {
    __syncthreads();  // here: second of two
  }
  a[threadIdx.x] = 1;
}
TEST_FUNCTION(different_barriers) {
  Device<> a(64);
  TwoBarriers<<<1, 64>>>(a.p);
  Finish();
}
__global__ void BarrierInIf(float* a) {
  if (threadIdx.x % 2) __syncthreads();  // here: in if
  a[threadIdx.x] = 1;
}
TEST_FUNCTION(barrier_in_an_if) {
  Device<> a(64);
  BarrierInIf<<<1, 64>>>(a.p);
  Finish();
}
__global__ void BarrierInLoop(float* a) {
  for (unsigned i = 0; i <= threadIdx.x / 32; i++) __syncthreads();  // here: in loop
  a[threadIdx.x] = 1;
}
TEST_FUNCTION(barriers_of_different_number) {
  Device<> a(64);
  BarrierInLoop<<<1, 64>>>(a.p);
  Finish();
}

// ---- warps

__global__ void ShuffleInIf(float* a) {
  float v = threadIdx.x;
  if (threadIdx.x < 16) v += __shfl_down_sync(0xffffffff, v, 8);  // here: shuffle in if
  __syncthreads();                                                // here: the others
  a[threadIdx.x] = v;
}
TEST_FUNCTION(shuffle_in_an_if) {
  Device<> a(32);
  ShuffleInIf<<<1, 32>>>(a.p);
  Finish();
}
__global__ void ShuffleTooFar(float* a) {
  a[threadIdx.x] = __shfl_xor_sync(0xffffffff, threadIdx.x, 16);  // here: too far
}
TEST_FUNCTION(shuffle_from_a_lane_that_is_not_there) {
  Device<> a(24);
  ShuffleTooFar<<<1, 24>>>(a.p);
  Finish();
}
__global__ void MaskWithoutMe(float* a) {
  a[threadIdx.x] = __shfl_sync(0x0000ffff, threadIdx.x, 0);  // here: without me
}
TEST_FUNCTION(mask_without_the_lane_itself) {
  Device<> a(32);
  MaskWithoutMe<<<1, 32>>>(a.p);
  Finish();
}
__global__ void DifferentMasks(float* a) {
  unsigned mask = threadIdx.x < 16 ? 0x0001ffffu : 0xffffffffu;
  a[threadIdx.x] = __shfl_sync(mask, threadIdx.x, 0);  // here: masks
}
TEST_FUNCTION(masks_that_differ) {
  Device<> a(32);
  DifferentMasks<<<1, 32>>>(a.p);
  Finish();
}
__global__ void FirstHalfGone(float* a) {
  if (threadIdx.x < 16) return;
  a[threadIdx.x] = __shfl_sync(0xffffffff, threadIdx.x, 0);  // here: gone
}
TEST_FUNCTION(shuffle_from_a_thread_that_has_ended) {
  Device<> a(32);
  FirstHalfGone<<<1, 32>>>(a.p);
  Finish();
}
__global__ void LaneOutsideMask(float* a) {
  if (threadIdx.x < 16) a[threadIdx.x] = __shfl_sync(0x0000ffff, threadIdx.x, 20);  // here: outside
}
TEST_FUNCTION(shuffle_from_outside_the_mask) {
  Device<> a(32);
  LaneOutsideMask<<<1, 32>>>(a.p);
  Finish();
}
__global__ void TileInIf(float* a) {
  auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  float v = threadIdx.x;
  if (tile.thread_rank() < 4) v = tile.shfl(v, 0);  // here: tile
  __syncthreads();
  a[threadIdx.x] = v;
}
TEST_FUNCTION(half_a_tile) {
  Device<> a(32);
  TileInIf<<<1, 32>>>(a.p);
  Finish();
}

// ---- shared memory

__global__ void UseDynamic(float* a) {
  extern __shared__ float s[];
  s[threadIdx.x] = a[threadIdx.x];  // here: use dynamic
  __syncthreads();
  a[threadIdx.x] = s[255 - threadIdx.x];
}
TEST_FUNCTION(no_dynamic_memory) {
  Device<> a(256);
  UseDynamic<<<1, 256>>>(a.p);
  Finish();
}
TEST_FUNCTION(dynamic_memory_in_elements) {
  Device<> a(256);
  UseDynamic<<<1, 256, 256>>>(a.p);
  Finish();
}
TEST_FUNCTION(much_dynamic_memory) {
  Check(cudaDeviceReset());  // another test may have allowed it
  Device<> a(256);
  UseDynamic<<<1, 256, 64 * 1024>>>(a.p);
  Finish();
}
TEST_FUNCTION(too_much_dynamic_memory) {
  Check(cudaFuncSetAttribute(UseDynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, 300 * 1024));
}
__global__ void InnerIndex(float* a) {
  __shared__ float s[16][16];
  int t = threadIdx.x;
  s[t / 16][t % 16] = a[t];
  __syncthreads();
  a[t] = s[t % 16][t / 16 + 1];  // here: inner
}
TEST_FUNCTION(inner_index) {
  Device<> a(256);
  InnerIndex<<<1, 256>>>(a.p);
  Finish();
}
__global__ void PastShared(float* a, int k) {
  __shared__ float s[256];
  float* p = s;
  p[threadIdx.x + k] = a[threadIdx.x];  // here: past shared
  __syncthreads();
  a[threadIdx.x] = p[threadIdx.x + k];
}
TEST_FUNCTION(past_the_end_of_shared) {
  Device<> a(256);
  PastShared<<<1, 256>>>(a.p, 1);
  Finish();
}
__global__ void BigShared(float* a) {
  __shared__ float s[128][128];  // here: big
  s[threadIdx.x][0] = 1;
  a[threadIdx.x] = s[threadIdx.x][0];
}
TEST_FUNCTION(too_much_shared) {
  Device<> a(128);
  BigShared<<<1, 128>>>(a.p);
  Finish();
}

// ---- alignment, arithmetic, time, and what a kernel gives up on

__global__ void LoadFour(const float* a, float* out) {
  float4 v = reinterpret_cast<const float4*>(a + 1)[threadIdx.x];  // here: four
  out[threadIdx.x] = v.x + v.y + v.z + v.w;
}
TEST_FUNCTION(misaligned_float4) {
  Device<> a(64), out(8);
  LoadFour<<<1, 8>>>(a.p, out.p);
  Finish();
}
__global__ void Divide(int* a, int divisor) {
  a[threadIdx.x] = a[threadIdx.x] / divisor;  // here: divide
}
TEST_FUNCTION(division_by_zero) {
  Device<int> a(8);
  Divide<<<1, 8>>>(a.p, 0);
  Finish();
}
__global__ void Endless(volatile float* a) {
  while (a[0] != 5) {  // here: endless
  }
}
TEST_FUNCTION(endless_loop) {
  Device<> a(8);
  Endless<<<1, 8>>>(a.p);
  Finish();
}
__global__ void Asserting(float* a, int n) {
  assert(n > 0 && "n must be positive");  // here: assert
  a[0] = n;
}
TEST_FUNCTION(failed_assertion) {
  Device<> a(8);
  Asserting<<<1, 8>>>(a.p, 0);
  Finish();
}
__global__ void Trapping() {
  if (threadIdx.x == 3) __trap();
}
TEST_FUNCTION(trap) {
  Trapping<<<1, 8>>>();
  Finish();
}
__device__ int Deeper(int n) {
  volatile char pad[512];
  pad[0] = 1;
  return n < 2 ? n + pad[0] : Deeper(n - 1) + pad[0];
}
__global__ void Deep(float* a) {
  a[0] = Deeper(100000);
}
TEST_FUNCTION(stack_overflow) {
  Device<> a(8);
  Deep<<<1, 1>>>(a.p);
  Finish();
}
__global__ void Throwing() {
  throw std::invalid_argument("hw3/compact is not implemented yet");
}
TEST_FUNCTION(exception_in_a_kernel) {
  try {
    Throwing<<<1, 8>>>();
  } catch (const std::invalid_argument&) {
    throw std::runtime_error("the same type came out");
  }
}
