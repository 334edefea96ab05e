// Kernels that are right. Nothing may be reported of them, in any order of the threads. Each barrier is numbered, so
// that the tests can leave out one at a time: every one is needed, and its absence must be reported as a race.
#include "testing.h"

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include <cmath>
#include <numeric>

namespace cg = cooperative_groups;

__constant__ int left_out = -1;  // the barrier that is missing
constexpr int kFirst = __COUNTER__;
#define BARRIER()                                              \
  do {                                                         \
    if (__COUNTER__ - kFirst - 1 != left_out) __syncthreads(); \
  } while (0)

static std::vector<float> Ramp(size_t n) {
  std::vector<float> values(n);
  for (size_t i = 0; i < n; i++) values[i] = static_cast<float>(i * 7 % 64) - 20;
  return values;
}

static void ExpectClose(const std::vector<float>& got, const std::vector<float>& wanted, const char* what) {
  for (size_t i = 0; i < wanted.size(); i++) {
    // float32 sums of up to some hundred terms
    Expect(std::fabs(got[i] - wanted[i]) <= 1e-4f * (1 + std::fabs(wanted[i])),
           std::string(what) + " at " + std::to_string(i));
  }
}

// ---- every thread hands something to another

__global__ void Reverse(float* a) {
  __shared__ float s[128];
  s[threadIdx.x] = a[threadIdx.x];
  BARRIER();
  a[threadIdx.x] = s[127 - threadIdx.x];
}
TEST_FUNCTION(reverse) {
  std::vector<float> values = Ramp(128);
  Device<> a(values);
  Reverse<<<1, 128>>>(a.p);
  Finish();
  ExpectClose(a.Get(), {values.rbegin(), values.rend()}, "reverse");
}

// ---- a tree of sums, with dynamic shared memory

__global__ void RowSums(const float* a, float* out, int columns) {
  extern __shared__ float part[];
  float sum = 0;
  for (int j = threadIdx.x; j < columns; j += blockDim.x) sum += a[blockIdx.x * columns + j];
  part[threadIdx.x] = sum;
  BARRIER();
  for (unsigned k = blockDim.x / 2; k > 0; k /= 2) {
    if (threadIdx.x < k) part[threadIdx.x] += part[threadIdx.x + k];
    BARRIER();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}
TEST_FUNCTION(row_sums) {
  std::vector<float> values = Ramp(3 * 200), wanted(3);
  for (int i = 0; i < 3; i++) wanted[i] = std::accumulate(&values[i * 200], &values[i * 200] + 200, 0.0f);
  Device<> a(values), out(3);
  RowSums<<<3, 64, 64 * sizeof(float)>>>(a.p, out.p, 200);
  Finish();
  ExpectClose(out.Get(), wanted, "row sums");
}

// ---- matrix products

template <int T>
__global__ void Tiled(const float* a, const float* b, float* out, int m, int n, int p) {
  __shared__ float a_tile[T][T], b_tile[T][T];
  const int ty = threadIdx.y, tx = threadIdx.x, i = blockIdx.y * T + ty, j = blockIdx.x * T + tx;
  float sum = 0;
  for (int k = 0; k < n; k += T) {
    a_tile[ty][tx] = i < m && k + tx < n ? a[i * n + k + tx] : 0;
    b_tile[ty][tx] = k + ty < n && j < p ? b[(k + ty) * p + j] : 0;
    BARRIER();
#pragma unroll
    for (int l = 0; l < T; l++) sum += a_tile[ty][l] * b_tile[l][tx];
    BARRIER();
  }
  if (i < m && j < p) out[i * p + j] = sum;
}

// each thread makes a 2 x 2 patch of a 16 x 16 tile
__global__ void __launch_bounds__(64)
    Registers(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ out, int n) {
  __shared__ float a_tile[8][16], b_tile[8][16];
  const int thread = threadIdx.y * 8 + threadIdx.x, row = blockIdx.y * 16, column = blockIdx.x * 16;
  float sum[2][2] = {};
  for (int k0 = 0; k0 < n; k0 += 8) {
    for (int x = thread; x < 128; x += 64) {
      a_tile[x % 8][x / 8] = a[(row + x / 8) * n + k0 + x % 8];
      b_tile[x / 16][x % 16] = b[(k0 + x / 16) * n + column + x % 16];
    }
    BARRIER();
    for (int k = 0; k < 8; k++) {
      for (int y = 0; y < 2; y++) {
        for (int x = 0; x < 2; x++) sum[y][x] += a_tile[k][threadIdx.y * 2 + y] * b_tile[k][threadIdx.x * 2 + x];
      }
    }
    BARRIER();
  }
  for (int y = 0; y < 2; y++) {
    for (int x = 0; x < 2; x++) out[(row + threadIdx.y * 2 + y) * n + column + threadIdx.x * 2 + x] = sum[y][x];
  }
}
static std::vector<float> Product(const std::vector<float>& a, const std::vector<float>& b, int m, int n, int p) {
  std::vector<float> out(m * p);
  for (int i = 0; i < m; i++) {
    for (int k = 0; k < n; k++) {
      for (int j = 0; j < p; j++) out[i * p + j] += a[i * n + k] * b[k * p + j];
    }
  }
  return out;
}
TEST_FUNCTION(tiled_matmul) {
  const int m = 13, n = 20, p = 11;
  const std::vector<float> x = Ramp(m * n), y = Ramp(n * p);
  Device<> a(x), b(y), out(m * p);
  Tiled<8><<<dim3(2, 2), dim3(8, 8)>>>(a.p, b.p, out.p, m, n, p);
  Finish();
  ExpectClose(out.Get(), Product(x, y, m, n, p), "tiled matmul");
}
TEST_FUNCTION(register_matmul) {
  const std::vector<float> x = Ramp(32 * 32), y = Ramp(32 * 32);
  Device<> a(x), b(y), out(32 * 32);
  Registers<<<dim3(2, 2), dim3(8, 8)>>>(a.p, b.p, out.p, 32);
  Finish();
  ExpectClose(out.Get(), Product(x, y, 32, 32, 32), "register matmul");
}

// ---- prefix sums, histograms, transposition

__global__ void PrefixSums(float* a) {
  __shared__ float s[64];
  const unsigned t = threadIdx.x;
  s[t] = a[t];
  BARRIER();
  for (unsigned distance = 1; distance < 64; distance *= 2) {
    const float other = t >= distance ? s[t - distance] : 0;
    BARRIER();
    s[t] += other;
    BARRIER();
  }
  a[t] = s[t];
}
TEST_FUNCTION(prefix_sums) {
  std::vector<float> values = Ramp(64), wanted(64);
  std::partial_sum(values.begin(), values.end(), wanted.begin());
  Device<> a(values);
  PrefixSums<<<1, 64>>>(a.p);
  Finish();
  ExpectClose(a.Get(), wanted, "prefix sums");
}
__global__ void Histogram(const int* values, int* counts, int n) {
  __shared__ int local[16];
  if (threadIdx.x < 16) local[threadIdx.x] = 0;
  BARRIER();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&local[values[i]], 1);
  BARRIER();
  if (threadIdx.x < 16) atomicAdd(&counts[threadIdx.x], local[threadIdx.x]);
}
TEST_FUNCTION(histogram) {
  std::vector<int> values(500), wanted(16);
  for (int i = 0; i < 500; i++) wanted[values[i] = i * i % 16]++;
  Device<int> a(values), counts(16, 0);
  Histogram<<<3, 64>>>(a.p, counts.p, 500);
  Finish();
  Expect(counts.Get() == wanted, "histogram");
}
__global__ void Transpose(const float* a, float* out, int rows, int columns) {
  __shared__ float tile[16][17];
  int i = blockIdx.y * 16 + threadIdx.y, j = blockIdx.x * 16 + threadIdx.x;
  if (i < rows && j < columns) tile[threadIdx.y][threadIdx.x] = a[i * columns + j];
  BARRIER();
  i = blockIdx.x * 16 + threadIdx.y, j = blockIdx.y * 16 + threadIdx.x;
  if (i < columns && j < rows) out[i * rows + j] = tile[threadIdx.x][threadIdx.y];
}
TEST_FUNCTION(transpose) {
  const int rows = 20, columns = 35;
  std::vector<float> values = Ramp(rows * columns), wanted(rows * columns);
  for (int i = 0; i < rows; i++) {
    for (int j = 0; j < columns; j++) wanted[j * rows + i] = values[i * columns + j];
  }
  Device<> a(values), out(rows * columns);
  Transpose<<<dim3(3, 2), dim3(16, 16)>>>(a.p, out.p, rows, columns);
  Finish();
  ExpectClose(out.Get(), wanted, "transpose");
}

// ---- warps

__device__ float WarpSum(float value) {
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_down_sync(0xffffffff, value, distance);
  return value;
}
__global__ void ShuffleSums(const float* a, float* out, int n) {
  __shared__ float part[4];
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += a[i];
  sum = WarpSum(sum);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  BARRIER();
  if (threadIdx.x < 32) {
    sum = WarpSum(threadIdx.x < 4 ? part[threadIdx.x] : 0);
    if (threadIdx.x == 0) *out = sum;
  }
}
TEST_FUNCTION(shuffle_sums) {
  std::vector<float> values = Ramp(300);
  Device<> a(values), out(1);
  ShuffleSums<<<1, 128>>>(a.p, out.p, 300);
  Finish();
  ExpectClose(out.Get(), {std::accumulate(values.begin(), values.end(), 0.0f)}, "shuffle sums");
}
__global__ void WarpExchange(float* a) {  // lanes hand data to each other through shared memory, with __syncwarp alone
  __shared__ float s[64];
  s[threadIdx.x] = a[threadIdx.x];
  __syncwarp();
  a[threadIdx.x] = s[threadIdx.x ^ 1];
}
TEST_FUNCTION(warp_exchange) {
  std::vector<float> values = Ramp(64), wanted(64);
  for (int i = 0; i < 64; i++) wanted[i] = values[i ^ 1];
  Device<> a(values);
  WarpExchange<<<1, 64>>>(a.p);
  Finish();
  ExpectClose(a.Get(), wanted, "warp exchange");
}
__global__ void Votes(int* out) {
  const unsigned all = 0xffffffff, lane = threadIdx.x;
  const int values[] = {__all_sync(all, lane < 32),
                        __any_sync(all, lane == 40),
                        (int)__popc(__ballot_sync(all, lane % 2)),
                        (int)__reduce_add_sync(all, lane),
                        (int)__reduce_max_sync(all, lane),
                        (int)__shfl_sync(all, lane, 3, 8),
                        (int)__shfl_up_sync(all, lane, 2),
                        (int)__shfl_down_sync(all, lane, 1, 4),
                        __syncthreads_count(lane < 7),
                        __syncthreads_or(lane == 3)};
  if (lane == 19) {
    for (int i = 0; i < 10; i++) out[i] = values[i];
  }
}
TEST_FUNCTION(votes) {
  Device<int> out(10);
  Votes<<<1, 32>>>(out.p);
  Finish();
  Expect((out.Get() == std::vector<int>{1, 0, 16, 496, 31, 19, 17, 19, 7, 1}), "votes of a warp");
}
__global__ void TileSums(const float* a, float* out) {
  const cg::thread_block block = cg::this_thread_block();
  const auto tile = cg::tiled_partition<8>(block);
  float sum = cg::reduce(tile, a[block.thread_rank()], cg::plus<float>());
  for (unsigned distance = 4; distance > 0; distance /= 2) tile.sync();
  if (tile.thread_rank() == 0) out[tile.meta_group_rank()] = sum + tile.meta_group_size() - block.size() / 8;
  block.sync();
}
TEST_FUNCTION(tile_sums) {
  std::vector<float> values = Ramp(64), wanted(8);
  for (int i = 0; i < 64; i++) wanted[i / 8] += values[i];
  Device<> a(values), out(8);
  TileSums<<<1, 64>>>(a.p, out.p);
  Finish();
  ExpectClose(out.Get(), wanted, "tile sums");
}

// ---- blocks that hand data to each other: the last one to finish adds up what the others have left

__device__ unsigned blocks_done = 0;
__global__ void LastBlockSums(const float* a, float* parts, float* out) {
  __shared__ bool last;
  float sum = WarpSum(a[blockIdx.x * 32 + threadIdx.x]);
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = sum;
    __threadfence();
    last = atomicAdd(&blocks_done, 1u) == gridDim.x - 1;
  }
  BARRIER();
  if (last && threadIdx.x == 0) {
    float total = 0;
    for (unsigned i = 0; i < gridDim.x; i++) total += parts[i];
    *out = total;
    blocks_done = 0;
  }
}
TEST_FUNCTION(last_block_sums) {
  std::vector<float> values = Ramp(8 * 32);
  Device<> a(values), parts(8), out(1);
  LastBlockSums<<<8, 32>>>(a.p, parts.p, out.p);
  Finish();
  ExpectClose(out.Get(), {std::accumulate(values.begin(), values.end(), 0.0f)}, "last block sums");
}

// ---- no barrier at all

__global__ void SpinLock(int* lock, float* total) {
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  *total += 1;
  __threadfence();
  atomicExch(lock, 0);
}
TEST_FUNCTION(spin_lock) {
  Device<int> lock(1, 0);
  Device<> total(1, 0.0f);
  SpinLock<<<2, 64>>>(lock.p, total.p);
  Finish();
  Expect(total.Get()[0] == 128, "spin lock");
}
__global__ void Atomics(float* f, int* i, unsigned long long* u, double* d) {
  atomicAdd(f, 0.5f), atomicAdd(d, 0.25), atomicAdd(u, 3ull), atomicMax(&i[0], threadIdx.x),
      atomicMin(&i[1], -threadIdx.x);
  atomicOr(&i[2], 1 << threadIdx.x % 8), atomicXor(&i[3], 1), atomicSub(&i[4], 2),
      atomicAnd(&i[5], ~(1 << threadIdx.x % 4));
}
TEST_FUNCTION(atomics) {
  Device<float> f(1, 0);
  Device<int> i(std::vector<int>{0, 0, 0, 0, 0, 15});
  Device<unsigned long long> u(1, 0);
  Device<double> d(1, 0);
  Atomics<<<2, 64>>>(f.p, i.p, u.p, d.p);
  Finish();
  Expect(f.Get()[0] == 64 && d.Get()[0] == 32 && u.Get()[0] == 384, "atomic sums");
  Expect((i.Get() == std::vector<int>{63, -63, 255, 0, -256, 0}), "atomics of integers");
}
__global__ void Indices(int* out, dim3 size) {
  const unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  const unsigned z = blockIdx.z * blockDim.z + threadIdx.z, i = (z * size.y + y) * size.x + x;
  out[i] += static_cast<int>(i) + 1;
}
TEST_FUNCTION(three_dimensions) {
  Device<int> out(8 * 6 * 4, 0);
  Indices<<<dim3(2, 3, 2), dim3(4, 2, 2)>>>(out.p, dim3(8, 6, 4));
  Finish();
  std::vector<int> wanted(8 * 6 * 4);
  std::iota(wanted.begin(), wanted.end(), 1);
  Expect(out.Get() == wanted, "three dimensions");
}

// ---- what stands in a launch

struct DevicePointer {  // frees what it has; a kernel gets the pointer
  float* p = nullptr;
  explicit DevicePointer(size_t n) { Check(cudaMalloc(&p, n * sizeof(float))); }
  DevicePointer(const DevicePointer&) = delete;
  ~DevicePointer() { cudaFree(p); }
  operator float*() const { return p; }
};
__global__ void SetOrKeep(const float* a, float* out, float value) {
  out[threadIdx.x] = a != nullptr ? a[threadIdx.x] : value;
}
template <class T>
__global__ void SetOrKeepAny(const T* a, T* out, T value) {
  out[threadIdx.x] = a != nullptr ? a[threadIdx.x] : value;
}
TEST_FUNCTION(arguments_are_converted_on_the_host) {
  DevicePointer out(32);
  Device<> kept(32, 0.0f);
  SetOrKeep<<<1, 32>>>(NULL, out, 3);
  SetOrKeep<<<1, 32>>>(out, kept.p, 0);
  Finish();
  Expect(kept.Get()[31] == 3, "an object that becomes a pointer");
  SetOrKeepAny<float><<<1, 32>>>(NULL, kept.p, 4);
  Finish();
  Expect(kept.Get()[31] == 4, "NULL for a template");
}

__global__ void Twice(const float* a, float* out) {
  out[threadIdx.x] = 2 * a[threadIdx.x];
}
__global__ void Thrice(const float* a, float* out) {
  out[threadIdx.x] = 3 * a[threadIdx.x];
}
__global__ void Apply(float (*function)(float), volatile const float* a, volatile float* out) {
  out[threadIdx.x] = function(a[threadIdx.x]);
}
__device__ float Four(float x) {
  return 4 * x;
}
TEST_FUNCTION(pointers_of_all_kinds) {
  Device<> a(32, 1.0f), out(32);
  Apply<<<1, 32>>>(Four, a.p, out.p);
  Finish();
  Expect(out.Get()[31] == 4, "a function, and memory that is volatile");
}
using Map = void (*)(const float*, float*);
static void Launch(Map kernel, const Device<>& a, const Device<>& out) {
  kernel<<<1, 32>>>(a.p, out.p);
}
TEST_FUNCTION(kernels_by_pointer) {
  Device<> a(32, 1.0f), out(32);
  Launch(Twice, a, out);
  Finish();
  Expect(out.Get()[31] == 2, "a kernel that a function gets");
  const Map kernels[] = {Twice, Thrice};
  kernels[1]<<<1, 32>>>(a.p, out.p);
  Finish();
  Expect(out.Get()[31] == 3, "a kernel of a table");
}

// ---- for the tests

extern "C" __attribute__((visibility("default"))) int number_of_barriers() {
  return __COUNTER__ - kFirst - 1;
}
extern "C" __attribute__((visibility("default"))) void leave_out(int barrier) {
  cudaMemcpyToSymbol(left_out, &barrier, sizeof(barrier));
}
extern "C" __attribute__((visibility("default"))) const char* function_names() {
  static std::string names;
  names.clear();
  for (const auto& [name, function] : Functions()) names += name + " ";
  return names.c_str();
}
