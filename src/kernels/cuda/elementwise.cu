#include "../elementwise.h"

#include "../../checks.h"
#include "../formulas.h"
#include "first_problem.h"
#include "launch.h"

namespace needle {
namespace {

using cuda::BlocksFor;
using cuda::kThreads;

// ---- the kernels ----------------------------------------------------------------------------------------------------

template <typename Op, typename T>
__global__ void UnaryOnDevice(const T* a, T* out, int64_t size) {
  GRID_STRIDE(i, size) out[i] = Op::Apply(a[i]);
}

/// With an array b or, where b is null, with a number: to choose costs nothing beside the wait for memory.
template <typename Op, typename T>
__global__ void BinaryOnDevice(const T* a, const T* b, T number, ResultOf<Op, T>* out, int64_t size) {
  GRID_STRIDE(i, size) out[i] = Op::Apply(a[i], b ? b[i] : number);
}

template <typename T>
__global__ void FillOnDevice(T* out, T value, int64_t size) {
  GRID_STRIDE(i, size) out[i] = value;
}

template <typename From, typename To>
__global__ void CastOnDevice(const From* a, To* out, int64_t size) {
  GRID_STRIDE(i, size) out[i] = Convert<To>(a[i]);
}

template <typename T>
__global__ void WhereOnDevice(const Bool* cond, const T* yes, const T* no, T* out, int64_t size) {
  GRID_STRIDE(i, size) out[i] = cond[i] ? yes[i] : no[i];
}

template <typename T>
__global__ void FindNegativeOnDevice(const T* a, int64_t size, long long* found) {
  GRID_STRIDE(i, size) {
    if (a[i] < T(0)) atomicMin(found, static_cast<long long>(i));
  }
}

// ---- the launchers --------------------------------------------------------------------------------------------------

template <typename Op, typename T>
void LaunchUnary(const Buffer& a, Buffer& out) {
  if (a.size() == 0) return;
  UnaryOnDevice<Op, T><<<BlocksFor(a.size()), kThreads>>>(a.as<T>(), out.as<T>(), a.size());
  CUDA_CHECK(cudaGetLastError());
}

template <typename Op, typename T>
void LaunchBinary(const Buffer& a, const T* b, T number, Buffer& out) {
  if (a.size() == 0) return;
  BinaryOnDevice<Op, T><<<BlocksFor(a.size()), kThreads>>>(a.as<T>(), b, number, out.as<ResultOf<Op, T>>(), a.size());
  CUDA_CHECK(cudaGetLastError());
}

template <typename T>
void LaunchFill(Buffer& out, T value) {
  if (out.size() == 0) return;
  FillOnDevice<T><<<BlocksFor(out.size()), kThreads>>>(out.as<T>(), value, out.size());
  CUDA_CHECK(cudaGetLastError());
}

template <typename From, typename To>
void LaunchCast(const Buffer& a, Buffer& out) {
  if (a.size() == 0) return;
  CastOnDevice<From, To><<<BlocksFor(a.size()), kThreads>>>(a.as<From>(), out.as<To>(), a.size());
  CUDA_CHECK(cudaGetLastError());
}

template <typename T>
void LaunchWhere(const Buffer& cond, const Buffer& yes, const Buffer& no, Buffer& out) {
  if (out.size() == 0) return;
  WhereOnDevice<T>
      <<<BlocksFor(out.size()), kThreads>>>(cond.as<Bool>(), yes.as<T>(), no.as<T>(), out.as<T>(), out.size());
  CUDA_CHECK(cudaGetLastError());
}

template <typename T>
bool HasNegative(const Buffer& a) {
  if constexpr (std::is_signed_v<T>) {
    if (a.size() == 0) return false;
    cuda::FirstProblem negative;
    FindNegativeOnDevice<T><<<BlocksFor(a.size()), kThreads>>>(a.as<T>(), a.size(), negative.device());
    CUDA_CHECK(cudaGetLastError());
    return negative.Find() != negative.kNone;
  }
  return false;
}

// ---- the functions that Python calls --------------------------------------------------------------------------------

template <typename Op>
void Unary(const Buffer& a, Buffer& out) {
  VisitOnly<typename Op::types>(Op::kEwise, a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    CheckBuffer(Op::kEwise, "out", out, a.size(), a.dtype());
    LaunchUnary<Op, T>(a, out);
  });
}

template <typename Op>
void Binary(const Buffer& a, const Buffer& b, Buffer& out) {
  VisitOnly<typename Op::types>(Op::kEwise, a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    CheckBuffer(Op::kEwise, "b", b, a.size(), a.dtype());
    CheckBuffer(Op::kEwise, "out", out, a.size(), ResultDType<Op, T>(a.dtype()));
    if constexpr (kIsIntegerPower<Op, T>) {
      if (HasNegative<T>(b)) RefuseNegativePower(Op::kEwise);
    }
    LaunchBinary<Op, T>(a, b.as<T>(), T(0), out);
  });
}

template <typename Op>
void WithScalar(const Buffer& a, const Scalar& val, Buffer& out) {
  VisitOnly<typename Op::types>(Op::kScalar, a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    CheckBuffer(Op::kScalar, "out", out, a.size(), ResultDType<Op, T>(a.dtype()));
    const T number = val.as<T>(Op::kScalar);
    if (kIsIntegerPower<Op, T> && number < T(0)) RefuseNegativePower(Op::kScalar);
    LaunchBinary<Op, T>(a, nullptr, number, out);
  });
}

template <typename... Ops>
std::vector<Row<UnaryKernel>> UnaryRowsOf() {
  return {{Ops::kEwise, &Unary<Ops>}...};
}

template <typename... Ops>
std::vector<Row<BinaryKernel>> BinaryRowsOf() {
  return {{Ops::kEwise, &Binary<Ops>}...};
}

template <typename... Ops>
std::vector<Row<ScalarKernel>> ScalarRowsOf() {
  return {{Ops::kScalar, &WithScalar<Ops>}...};
}

}  // namespace

std::vector<Row<UnaryKernel>> UnaryRows() {
  return UnaryRowsOf<NEEDLE_UNARY_OPS>();
}

std::vector<Row<BinaryKernel>> BinaryRows() {
  return BinaryRowsOf<NEEDLE_BINARY_OPS>();
}

std::vector<Row<ScalarKernel>> ScalarRows() {
  return ScalarRowsOf<NEEDLE_BINARY_OPS>();
}

void Fill(Buffer& out, const Scalar& val) {
  Visit(out.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    LaunchFill<T>(out, val.as<T>("fill"));
  });
}

void Cast(const Buffer& a, Buffer& out) {
  CheckSize("cast", "out", out.size(), a.size());
  Visit(a.dtype(), [&](auto from) {
    Visit(out.dtype(),
          [&](auto to) { LaunchCast<typename decltype(from)::type, typename decltype(to)::type>(a, out); });
  });
}

void Where(const Buffer& cond, const Buffer& a, const Buffer& b, Buffer& out) {
  CheckBuffer("where", "cond", cond, a.size(), DType::kBool);
  CheckBuffer("where", "b", b, a.size(), a.dtype());
  CheckBuffer("where", "out", out, a.size(), a.dtype());
  Visit(a.dtype(), [&](auto type) { LaunchWhere<typename decltype(type)::type>(cond, a, b, out); });
}

}  // namespace needle
