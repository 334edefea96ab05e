// Loops over several threads: OpenMP where it was found, one thread elsewhere.
#ifndef NEEDLE_KERNELS_PARALLEL_H_
#define NEEDLE_KERNELS_PARALLEL_H_

#include <algorithm>
#include <cstdint>
#include <exception>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace needle {

/// At most so many threads work on one kernel: NEEDLE_NUM_THREADS, else what OpenMP would take.
int NumThreads();
void SetNumThreads(int64_t threads);

/// Call body(begin, end) on pieces that make up [0, count), each of `grain` items or more, on several threads where
/// that leaves more than one piece.  What body throws comes out of here.
template <typename Body>
void ParallelFor(int64_t count, int64_t grain, const Body& body) {
  if (count <= 0) return;
#ifdef _OPENMP
  const int threads = static_cast<int>(std::min<int64_t>(NumThreads(), count / std::max<int64_t>(grain, 1)));
  if (threads > 1) {
    std::exception_ptr thrown;  // an exception must not leave the thread
#pragma omp parallel num_threads(threads)
    try {
      const int64_t piece = omp_get_thread_num(), pieces = omp_get_num_threads();
      const int64_t length = count / pieces, longer = count % pieces;  // the first `longer` pieces have one item more
      const int64_t begin = piece * length + std::min(piece, longer);
      body(begin, begin + length + (piece < longer));
    } catch (...) {
#pragma omp critical
      thrown = std::current_exception();
    }
    if (thrown) std::rethrow_exception(thrown);
    return;
  }
#else
  (void)grain;
#endif
  body(int64_t{0}, count);
}

/// Call body(member, members) on each thread of a team of at most `members`, which may wait for each other by
/// TeamBarrier if they are more than one.  body must not throw.  On one of several threads the team is that thread.
template <typename Body>
void ParallelTeam(int64_t members, const Body& body) {
#ifdef _OPENMP
  if (members > 1 && !omp_in_parallel()) {
#pragma omp parallel num_threads(static_cast<int>(members))
    body(int64_t{omp_get_thread_num()}, int64_t{omp_get_num_threads()});
    return;
  }
#else
  (void)members;
#endif
  body(int64_t{0}, int64_t{1});
}

/// All of a team come here before any goes on.
inline void TeamBarrier() {
#ifdef _OPENMP
#pragma omp barrier
#endif
}

}  // namespace needle

#endif  // NEEDLE_KERNELS_PARALLEL_H_
