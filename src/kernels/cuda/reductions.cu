#include "../reductions.h"

#include "../arithmetic.h"
#include "../elementwise.h"
#include "team.h"

namespace needle {
namespace {

using cuda::kThreads;
using cuda::kWarp;
using cuda::kWarpsInBlock;
using cuda::Team;

// ---- what is folded -------------------------------------------------------------------------------------------------

// Each has a State (what a thread remembers), Read (the state of one element) and Fold (the state of two states).

template <typename T>
struct Sum {
  using State = T;
  __device__ static T Read(const T* run, int64_t i) { return run[i]; }
  __device__ static T Fold(T a, T b) { return Add(a, b); }
};

template <typename T>
struct Prod {
  using State = T;
  __device__ static T Read(const T* run, int64_t i) { return run[i]; }
  __device__ static T Fold(T a, T b) { return Multiply(a, b); }
};

template <typename T>
struct Max {
  using State = T;
  __device__ static T Read(const T* run, int64_t i) { return run[i]; }
  __device__ static T Fold(T a, T b) { return Maximum(a, b); }
};

template <typename T>
struct Min {
  using State = T;
  __device__ static T Read(const T* run, int64_t i) { return run[i]; }
  __device__ static T Fold(T a, T b) { return Minimum(a, b); }
};

/// An element, and where in its run it stands.
template <typename T>
struct Place {
  T value;
  int64_t position;
};

/// The first position that no other beats; a NaN is beaten by nothing.
template <typename T, bool kLargest>
struct Arg {
  using State = Place<T>;
  __device__ static State Read(const T* run, int64_t i) { return {run[i], i}; }
  __device__ static State Fold(State a, State b) {
    if (IsNan(a.value) != IsNan(b.value)) return IsNan(a.value) ? a : b;
    if (kLargest ? a.value > b.value : a.value < b.value) return a;
    if (kLargest ? b.value > a.value : b.value < a.value) return b;
    return a.position < b.position ? a : b;
  }
};
template <typename T>
using Argmax = Arg<T, true>;
template <typename T>
using Argmin = Arg<T, false>;

template <typename T>
__device__ void Store(T* out, T state) {
  *out = state;
}
template <typename T>
__device__ void Store(int64_t* out, Place<T> state) {
  *out = state.position;
}

// ---- the kernels ----------------------------------------------------------------------------------------------------

/// A thread to each run: for runs too short for a warp.
template <typename Op, typename T, typename Out>
__global__ void FoldShortRuns(const T* a, Out* out, int64_t runs, int64_t length) {
  GRID_STRIDE(run, runs) {
    typename Op::State state = Op::Read(a + run * length, 0);
    for (int64_t i = 1; i < length; i++) state = Op::Fold(state, Op::Read(a + run * length, i));
    Store(out + run, state);
  }
}

/// A team to each run, of at least as many elements as the team has threads.  Its threads read neighbouring elements.
template <int kSize, typename Op, typename T, typename Out>
__global__ void FoldRuns(const T* a, Out* out, int64_t runs, int64_t length) {
  using State = typename Op::State;
  using OneTeam = Team<kSize>;
  __shared__ State scratch[kWarpsInBlock];
  for (int64_t run = OneTeam::First(); run < runs; run += OneTeam::Step()) {
    State state = Op::Read(a + run * length, OneTeam::Rank());
    for (int64_t i = OneTeam::Rank() + kSize; i < length; i += kSize) {
      state = Op::Fold(state, Op::Read(a + run * length, i));
    }
    state = OneTeam::FoldAll(state, scratch, [](State x, State y) { return Op::Fold(x, y); });
    if (OneTeam::Rank() == 0) Store(out + run, state);
  }
}

/// A block to each piece of a few long runs: one block a run would not keep a GPU busy.  Pieces differ by one element
/// at most, so none is shorter than a block.
template <typename Op, typename T>
__global__ void FoldPieces(const T* a, T* out, int64_t runs, int64_t length, int64_t pieces) {
  __shared__ T scratch[kWarpsInBlock];
  const int64_t shorter = length / pieces, longer = length % pieces;  // the first `longer` have one element more
  for (int64_t i = blockIdx.x; i < runs * pieces; i += gridDim.x) {
    const int64_t piece = i % pieces, end = shorter + (piece < longer);
    const T* begin = a + i / pieces * length + piece * shorter + (piece < longer ? piece : longer);
    T state = begin[threadIdx.x];
    for (int64_t j = threadIdx.x + kThreads; j < end; j += kThreads) state = Op::Fold(state, begin[j]);
    state = Team<kThreads>::FoldAll(state, scratch, [](T x, T y) { return Op::Fold(x, y); });
    if (threadIdx.x == 0) out[i] = state;
  }
}

// ---- the launchers --------------------------------------------------------------------------------------------------

constexpr int64_t kPiece = 1 << 14;  // elements: 64 to a thread, so that a sum's rounding errors stay few
constexpr int64_t kFewRuns = 128;    // fewer than a large GPU has multiprocessors

template <template <typename> class Op, typename T, typename Out>
void LaunchFold(const T* a, Out* out, int64_t runs, int64_t length) {
  if (length < kWarp) {
    FoldShortRuns<Op<T>, T, Out><<<cuda::BlocksFor(runs), kThreads>>>(a, out, runs, length);
  } else if (length <= cuda::kLongRun) {
    FoldRuns<kWarp, Op<T>, T, Out><<<cuda::BlocksFor(runs, kWarpsInBlock), kThreads>>>(a, out, runs, length);
  } else {
    FoldRuns<kThreads, Op<T>, T, Out><<<cuda::BlocksFor(runs, 1), kThreads>>>(a, out, runs, length);
  }
  CUDA_CHECK(cudaGetLastError());
}

/// First each piece to one number, then each run's numbers.
template <template <typename> class Op, typename T>
void LaunchFoldLong(const T* a, T* out, int64_t runs, int64_t length, DType dtype) {
  const int64_t pieces = length / kPiece;
  Buffer folded(runs * pieces, dtype);
  FoldPieces<Op<T>, T><<<cuda::BlocksFor(runs * pieces, 1), kThreads>>>(a, folded.as<T>(), runs, length, pieces);
  CUDA_CHECK(cudaGetLastError());
  LaunchFold<Op, T, T>(folded.as<T>(), out, runs, pieces);
}

// ---- the functions that Python calls --------------------------------------------------------------------------------

template <template <typename> class Op>
void Reduce(const Buffer& a, Buffer& out, int64_t reduce_size) {
  if (a.size() == 0) return;
  Visit(a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    if (reduce_size >= 2 * kPiece && out.size() < kFewRuns) {
      LaunchFoldLong<Op, T>(a.as<T>(), out.as<T>(), out.size(), reduce_size, a.dtype());
    } else {
      LaunchFold<Op, T, T>(a.as<T>(), out.as<T>(), out.size(), reduce_size);
    }
  });
}

template <template <typename> class Op>
void ReduceWithIdentity(const char* who, int64_t identity, const Buffer& a, Buffer& out, int64_t reduce_size) {
  CheckRuns(who, a, out, a.dtype(), reduce_size, true);
  if (reduce_size == 0) return Fill(out, Scalar(identity));
  Reduce<Op>(a, out, reduce_size);
}

template <template <typename> class Op>
void ReduceToMember(const char* who, const Buffer& a, Buffer& out, int64_t reduce_size) {
  CheckRuns(who, a, out, a.dtype(), reduce_size, false);
  Reduce<Op>(a, out, reduce_size);
}

template <template <typename> class Op>
void ReduceToPlace(const char* who, const Buffer& a, Buffer& out, int64_t reduce_size) {
  CheckRuns(who, a, out, DType::kInt64, reduce_size, false);
  if (a.size() == 0) return;
  Visit(a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    LaunchFold<Op, T, int64_t>(a.as<T>(), out.as<int64_t>(), out.size(), reduce_size);
  });
}

}  // namespace

void ReduceSum(const Buffer& a, Buffer& out, int64_t reduce_size) {
  ReduceWithIdentity<Sum>("reduce_sum", 0, a, out, reduce_size);
}

void ReduceProd(const Buffer& a, Buffer& out, int64_t reduce_size) {
  ReduceWithIdentity<Prod>("reduce_prod", 1, a, out, reduce_size);
}

void ReduceMax(const Buffer& a, Buffer& out, int64_t reduce_size) {
  ReduceToMember<Max>("reduce_max", a, out, reduce_size);
}

void ReduceMin(const Buffer& a, Buffer& out, int64_t reduce_size) {
  ReduceToMember<Min>("reduce_min", a, out, reduce_size);
}

void ReduceArgmax(const Buffer& a, Buffer& out, int64_t reduce_size) {
  ReduceToPlace<Argmax>("reduce_argmax", a, out, reduce_size);
}

void ReduceArgmin(const Buffer& a, Buffer& out, int64_t reduce_size) {
  ReduceToPlace<Argmin>("reduce_argmin", a, out, reduce_size);
}

}  // namespace needle
