// What the emulator takes, of one core where nothing else is said: element-wise kernels, barriers, shuffles, launches. speed.py runs it.
#include "testing.h"

#include <time.h>

#include <algorithm>
#include <cstdio>

// By default of all threads of the process: on a machine that is busy with other things, the time on the wall says
// little.
static double Seconds(clockid_t clock = CLOCK_PROCESS_CPUTIME_ID) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// The shortest of some runs: what disturbs a run only ever makes it longer.
template <class F>
static double Best(F run, int times = 7, clockid_t clock = CLOCK_PROCESS_CPUTIME_ID) {
  double best = 1e9;
  for (int i = 0; i < times; i++) {
    const double start = Seconds(clock);
    run();
    best = std::min(best, Seconds(clock) - start);
  }
  return best;
}

__global__ void Add(const float* a, const float* b, float* out, size_t n) {
  const size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] + b[i];
}
__global__ void Barriers(int n) {
  for (int i = 0; i < n; i++) __syncthreads();
}
__global__ void Shuffles(float* out, int n) {
  float v = threadIdx.x;
  for (int i = 0; i < n; i++) v += __shfl_xor_sync(0xffffffffu, v, 1);
  out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}
template <int T>
__global__ void Matmul(const float* a, const float* b, float* out, int n) {
  __shared__ float a_tile[T][T], b_tile[T][T];
  const int ty = threadIdx.y, tx = threadIdx.x, i = blockIdx.y * T + ty, j = blockIdx.x * T + tx;
  float sum = 0;
  for (int k0 = 0; k0 < n; k0 += T) {
    a_tile[ty][tx] = a[i * n + k0 + tx];
    b_tile[ty][tx] = b[(k0 + ty) * n + j];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < T; k++) sum += a_tile[ty][k] * b_tile[k][tx];
    __syncthreads();
  }
  out[i * n + j] = sum;
}

TEST_FUNCTION(speed) {
#ifdef CUDA_EMU_CHECK
  const int shrink = 64;
#else
  const int shrink = 1;
#endif
  const size_t n = (size_t{1} << 22) / shrink;
  const int steps = 2000 / shrink, size = 512 / (shrink > 1 ? 4 : 1);
  Device<> a(n), b(n), out(n);
  auto add_all = [&] { Add<<<(n + 255) / 256, 256>>>(a.p, b.p, out.p, n); };
  const double add = Best(add_all), add_wall = Best(add_all, 7, CLOCK_MONOTONIC);
  const double barrier = Best([&] { Barriers<<<16, 256>>>(steps); });
  const double shuffle = Best([&] { Shuffles<<<16, 256>>>(out.p, steps); });
  Device<> c(1024), d(1024), e(1024);
  const double launch = Best([&] { Add<<<4, 256>>>(c.p, d.p, e.p, 1024); }, 200);
  Device<> x(size * size), y(size * size), z(size * size);
  const double matmul = Best([&] { Matmul<16><<<dim3(size / 16, size / 16), dim3(16, 16)>>>(x.p, y.p, z.p, size); }, 3);
  std::printf("element-wise addition  %8.0f M elements/s a core, %.0f on all\n", n / add / 1e6, n / add_wall / 1e6);
  std::printf("__syncthreads          %8.1f ns a thread\n", barrier / (16.0 * 256 * steps) * 1e9);
  std::printf("__shfl_xor_sync        %8.1f ns a thread\n", shuffle / (16.0 * 256 * steps) * 1e9);
  std::printf("launch of 1024 threads %8.1f us\n", launch * 1e6);
  std::printf("matmul, 16 x 16 tiles  %8.2f GFLOP/s (%d x %d)\n", 2.0 * size * size * size / matmul / 1e9, size, size);
  std::fflush(stdout);
}
