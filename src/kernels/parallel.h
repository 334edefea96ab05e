// Loops over several threads, which are needle's own: see parallel.cc for why, and for how they wait.
#ifndef NEEDLE_KERNELS_PARALLEL_H_
#define NEEDLE_KERNELS_PARALLEL_H_

#include <cstdint>

namespace needle {

/// At most so many threads work on one kernel: NEEDLE_NUM_THREADS, else OMP_NUM_THREADS, else as many as there are
/// processors for this program.
int NumThreads();
void SetNumThreads(int64_t threads);

/// What of ParallelFor is compiled once; it calls body(context, begin, end).
using PieceBody = void (*)(const void* context, int64_t begin, int64_t end);
void RunPieces(int64_t count, int64_t grain, PieceBody body, const void* context);

/// Call body(begin, end) on pieces that make up [0, count), each of `grain` items or more, on several threads where
/// that leaves more than one piece.  There is but one piece where the caller is inside of another such loop, or another
/// caller has the threads.  No piece may wait for another.  What body throws comes out of here.
template <typename Body>
void ParallelFor(int64_t count, int64_t grain, const Body& body) {
  const auto call = [](const void* context, int64_t begin, int64_t end) {
    (*static_cast<const Body*>(context))(begin, end);
  };
  RunPieces(count, grain, call, &body);
}

}  // namespace needle

#endif  // NEEDLE_KERNELS_PARALLEL_H_
