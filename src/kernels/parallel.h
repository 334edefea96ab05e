// Loops over several threads, which are needle's own: see parallel.cc for why, and for how they wait.
#ifndef NEEDLE_KERNELS_PARALLEL_H_
#define NEEDLE_KERNELS_PARALLEL_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>

namespace needle {

/// At most so many threads work on one kernel: NEEDLE_NUM_THREADS, else OMP_NUM_THREADS, else as many as there are
/// processors for this program.
int NumThreads();
void SetNumThreads(int64_t threads);

/// Call body(context, member, members) for every member from 0 to members - 1, on threads as far as they come in time.
/// There is but one where the caller is a member already, or another caller has the threads.  No member may wait for
/// another, nor throw.
using MemberBody = void (*)(void* context, int64_t member, int64_t members);
void RunMembers(int64_t members, MemberBody body, void* context);

/// Call body(begin, end) on pieces that make up [0, count), each of `grain` items or more, on several threads where
/// that leaves more than one piece.  What body throws comes out of here.
template <typename Body>
void ParallelFor(int64_t count, int64_t grain, const Body& body) {
  if (count <= 0) return;
  const int64_t pieces = std::min<int64_t>(NumThreads(), count / std::max<int64_t>(grain, 1));
  if (pieces <= 1) return body(int64_t{0}, count), void();
  std::exception_ptr thrown;  // an exception must not leave its thread
  std::atomic<bool> failed{false};
  const auto run = [&](int64_t member, int64_t members) {
    const int64_t length = count / members, longer = count % members;  // the first `longer` pieces have one item more
    const int64_t begin = member * length + std::min(member, longer);
    try {
      body(begin, begin + length + (member < longer));
    } catch (...) {
      if (!failed.exchange(true)) thrown = std::current_exception();
    }
  };
  using Run = decltype(run);
  const auto call = [](void* context, int64_t member, int64_t members) {
    (*static_cast<Run*>(context))(member, members);
  };
  RunMembers(pieces, call, const_cast<void*>(static_cast<const void*>(&run)));
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace needle

#endif  // NEEDLE_KERNELS_PARALLEL_H_
