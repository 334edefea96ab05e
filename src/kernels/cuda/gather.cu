#include "../gather.h"

#include "../arithmetic.h"
#include "first_problem.h"
#include "launch.h"

namespace needle {
namespace {

using cuda::BlocksFor;
using cuda::kThreads;

// ---- the kernels ----------------------------------------------------------------------------------------------------

/// The rows that indices mean, counted from the start; where one means none, its place is noted.
__global__ void FindRows(const int64_t* indices, int64_t* rows, int64_t count, int64_t axis_size, long long* problem) {
  GRID_STRIDE(i, count) {
    const int64_t index = indices[i];
    if (index < -axis_size || index >= axis_size) atomicMin(problem, static_cast<long long>(i));
    rows[i] = index < 0 ? index + axis_size : index;
  }
}

template <typename T>
__global__ void TakeRows(const T* a, const int64_t* rows, T* out, int64_t size, int64_t count, int64_t axis_size,
                         int64_t inner) {
  GRID_STRIDE(i, size) {
    const int64_t row = i / inner, outer = row / count;
    out[i] = a[(outer * axis_size + rows[row - outer * count]) * inner + (i - row * inner)];
  }
}

// two equal indices add to one element, perhaps at once
__device__ inline void AddAtomically(float* to, float a) {
  atomicAdd(to, a);
}
__device__ inline void AddAtomically(double* to, double a) {
  atomicAdd(to, a);
}
__device__ inline void AddAtomically(int32_t* to, int32_t a) {
  atomicAdd(to, a);
}
__device__ inline void AddAtomically(int64_t* to, int64_t a) {
  atomicAdd(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(a));
}

/// Floats that meet in one element are added in any order: their sum's last bits may differ from run to run.
template <typename T>
__global__ void AddRows(const T* a, const int64_t* rows, T* out, int64_t size, int64_t count, int64_t axis_size,
                        int64_t inner) {
  GRID_STRIDE(i, size) {
    const int64_t row = i / inner, outer = row / count;
    AddAtomically(out + (outer * axis_size + rows[row - outer * count]) * inner + (i - row * inner), a[i]);
  }
}

/// For the types of one byte, which have no atomic addition: a thread adds all that is in one column.
template <typename T>
__global__ void AddColumns(const T* a, const int64_t* rows, T* out, int64_t columns, int64_t count, int64_t axis_size,
                           int64_t inner) {
  GRID_STRIDE(column, columns) {
    const int64_t outer = column / inner, j = column - outer * inner;
    for (int64_t i = 0; i < count; i++) {
      T* to = out + (outer * axis_size + rows[i]) * inner + j;
      *to = Add(*to, a[(outer * count + i) * inner + j]);
    }
  }
}

// ---- the launchers --------------------------------------------------------------------------------------------------

/// The rows that the indices mean.  A copy: nobody can change it after it was checked.
void CheckedRows(const char* who, const Buffer& indices, int64_t axis_size, Buffer& rows) {
  if (indices.size() == 0) return;
  cuda::FirstProblem outside;
  FindRows<<<BlocksFor(indices.size()), kThreads>>>(indices.as<int64_t>(), rows.as<int64_t>(), indices.size(),
                                                    axis_size, outside.device());
  CUDA_CHECK(cudaGetLastError());
  const int64_t place = outside.Find();
  if (place == outside.kNone) return;
  int64_t index = 0;
  CUDA_CHECK(cudaMemcpy(&index, indices.as<int64_t>() + place, sizeof(index), cudaMemcpyDeviceToHost));
  RefuseIndex(who, index, axis_size);
}

template <typename T>
void LaunchTake(const Buffer& a, const Buffer& rows, Buffer& out, int64_t axis_size, int64_t inner) {
  TakeRows<T><<<BlocksFor(out.size()), kThreads>>>(a.as<T>(), rows.as<int64_t>(), out.as<T>(), out.size(), rows.size(),
                                                   axis_size, inner);
  CUDA_CHECK(cudaGetLastError());
}

template <typename T>
void LaunchScatterAdd(const Buffer& a, const Buffer& rows, Buffer& out, int64_t outer, int64_t axis_size,
                      int64_t inner) {
  if constexpr (sizeof(T) == 1) {
    AddColumns<T><<<BlocksFor(outer * inner), kThreads>>>(a.as<T>(), rows.as<int64_t>(), out.as<T>(), outer * inner,
                                                          rows.size(), axis_size, inner);
  } else {
    AddRows<T><<<BlocksFor(a.size()), kThreads>>>(a.as<T>(), rows.as<int64_t>(), out.as<T>(), a.size(), rows.size(),
                                                  axis_size, inner);
  }
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace

// ---- the functions that Python calls --------------------------------------------------------------------------------

void Take(const Buffer& a, const Buffer& indices, Buffer& out, int64_t outer, int64_t axis_size, int64_t inner) {
  CheckPair("take", "a", a, "out", out, indices, outer, axis_size, inner);
  Buffer rows(indices.size(), DType::kInt64);
  CheckedRows("take", indices, axis_size, rows);
  if (out.size() == 0) return;
  Visit(a.dtype(), [&](auto type) { LaunchTake<typename decltype(type)::type>(a, rows, out, axis_size, inner); });
}

void ScatterAdd(const Buffer& a, const Buffer& indices, Buffer& out, int64_t outer, int64_t axis_size, int64_t inner) {
  CheckPair("scatter_add", "out", out, "a", a, indices, outer, axis_size, inner);
  Buffer rows(indices.size(), DType::kInt64);
  CheckedRows("scatter_add", indices, axis_size, rows);
  if (a.size() == 0) return;
  Visit(a.dtype(),
        [&](auto type) { LaunchScatterAdd<typename decltype(type)::type>(a, rows, out, outer, axis_size, inner); });
}

}  // namespace needle
