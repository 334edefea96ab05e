#include "parallel.h"

#include <pthread.h>

#include <atomic>
#include <cstdlib>

#include "../checks.h"

namespace needle {
namespace {

constexpr int64_t kMostThreads = 1024;

int DefaultThreads() {
  const char* text = std::getenv("NEEDLE_NUM_THREADS");
  const int64_t wanted = text ? std::strtol(text, nullptr, 10) : 0;
  if (wanted > 0) return static_cast<int>(std::min(wanted, kMostThreads));
#ifdef _OPENMP
  return omp_get_max_threads();
#else
  return 1;
#endif
}

std::atomic<int>& Threads() {
  static std::atomic<int> threads{DefaultThreads()};
  return threads;
}

// a forked child has none of its parent's threads, and GCC's OpenMP would wait for them for ever
const int at_fork = pthread_atfork(nullptr, nullptr, [] { Threads() = 1; });

}  // namespace

int NumThreads() {
  return Threads();
}

void SetNumThreads(int64_t threads) {
  if (threads < 1 || threads > kMostThreads) {
    Refuse("set_num_threads", std::to_string(threads) + ", wanted 1 to " + std::to_string(kMostThreads));
  }
  Threads() = static_cast<int>(threads);
}

}  // namespace needle
