// What the machine can do at most, for benchmarks: plain loops, compiled for this very machine.
//
// fma    independent multiply-adds on registers, on every thread: the ceiling of arithmetic
// read, scale, add, triad   one pass over arrays that no cache holds: the ceiling of memory.  `add` and the others that
//        write do it twice over, by plain stores and by stores that pass the caches by; the better one counts.
#include <cstdint>
#ifdef _OPENMP
#include <omp.h>
#endif

#if defined(__AVX512F__)
constexpr int kBytes = 64;
#elif defined(__AVX__)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif
constexpr int kLanes = kBytes / 4;
typedef float Vector __attribute__((vector_size(kBytes)));

/// A store that does not read the line first, where the compiler offers one.
static inline void Stream(float* to, Vector value) {
#if defined(__clang__)
  __builtin_nontemporal_store(value, reinterpret_cast<Vector*>(to));
#elif defined(__AVX512F__)
  __builtin_ia32_movntps512(to, value);
#elif defined(__AVX__)
  __builtin_ia32_movntps256(to, value);
#else
  *reinterpret_cast<Vector*>(to) = value;
#endif
}

static inline Vector At(const float* from) {
  return *reinterpret_cast<const Vector*>(from);
}

extern "C" {

/// 16 chains of `steps` multiply-adds on vectors of kLanes floats, on each thread; returns the multiply-adds done.
double ProbeFma(int64_t steps, int threads, float* out) {
#pragma omp parallel num_threads(threads)
  {
    constexpr int kChains = 16;
    Vector chain[kChains], factor, term;
    for (int lane = 0; lane < kLanes; ++lane) factor[lane] = 0.999f, term[lane] = 0.001f;
    for (int c = 0; c < kChains; ++c) chain[c] = term * static_cast<float>(c);
    for (int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 16
      for (int c = 0; c < kChains; ++c) chain[c] = chain[c] * factor + term;
    }
    Vector sum = chain[0];
    for (int c = 1; c < kChains; ++c) sum += chain[c];
#pragma omp critical
    for (int lane = 0; lane < kLanes; ++lane) *out += sum[lane];
  }
  return static_cast<double>(steps) * 16 * kLanes * threads;
}

void ProbeRead(const float* a, int64_t n, int threads, float* out) {
  float total = 0;
#pragma omp parallel for num_threads(threads) reduction(+ : total)
  for (int64_t block = 0; block < n / 4096; ++block) {
    Vector sums[8] = {};
    for (int64_t i = block * 4096; i < (block + 1) * 4096; i += 8 * kLanes) {
      for (int s = 0; s < 8; ++s) sums[s] += At(a + i + s * kLanes);
    }
    for (int s = 1; s < 8; ++s) sums[0] += sums[s];
    for (int lane = 0; lane < kLanes; ++lane) total += sums[0][lane];
  }
  *out = total;
}

// clang-format off: it takes _Pragma for a part of the loop
#define PROBE(Name, formula, ...)                                       \
  void Probe##Name(__VA_ARGS__, float* c, int64_t n, int threads) {     \
    _Pragma("omp parallel for num_threads(threads) schedule(static)")   \
    for (int64_t i = 0; i < n / kLanes * kLanes; i += kLanes) *reinterpret_cast<Vector*>(c + i) = formula; \
  }                                                                     \
  void Probe##Name##Stream(__VA_ARGS__, float* c, int64_t n, int threads) { \
    _Pragma("omp parallel for num_threads(threads) schedule(static)")   \
    for (int64_t i = 0; i < n / kLanes * kLanes; i += kLanes) Stream(c + i, formula); \
  }
// clang-format on

PROBE(Scale, At(a + i) * 3.0f, const float* a)
PROBE(Add, At(a + i) + At(b + i), const float* a, const float* b)
PROBE(Triad, At(a + i) + At(b + i) * 3.0f, const float* a, const float* b)
}
