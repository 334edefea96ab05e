// The course's CUDA kernels, the twins of ndarray_backend_cpu.cc: where that file has a loop, this one has a thread for
// each turn.
//
// A kernel, marked __global__, is what one thread does; the function below it launches enough of them.  The bindings
// have checked that every index lies inside the storage, and that there is at least one element to work on.  The same
// file runs on a GPU, compiled by nvcc, and on a machine without one, by the emulator in cuda_emu/.
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>

#include "cuda_array.h"
#include "cuda_launch.h"

namespace needle {
namespace cuda {

__global__ void FillKernel(scalar_t* out, scalar_t val, int64_t size) {
  const int64_t i = GlobalIndex();
  if (i < size) out[i] = val;  // the last block has threads to spare
}

/// Set every element to val.
void Fill(CudaArray* out, scalar_t val) {
  FillKernel<<<Grid(Blocks(out->size, kBlockThreads)), kBlockThreads>>>(out->ptr, val, out->size);
  CUDA_CHECK(cudaGetLastError());
}

// ---- strided views ------------------------------------------------------------------------------------------------

/// Where the i-th element of a view, counted in row-major order, lies in its storage.
__device__ inline int64_t Position(int64_t i, const View& view);

/// Copy the view of `a` that shape, strides and offset describe into `out`, in row-major order.
void Compact(const CudaArray& a, CudaArray* out, const Dims& shape, const Dims& strides, int64_t offset);

/// BEGIN YOUR SOLUTION hw3/cuda_compact
__device__ inline int64_t Position(int64_t i, const View& view) {
  int64_t position = view.offset;
  // as with the digits of a number: the last axis is the remainder, what is left counts the axes in front of it
  for (int axis = view.axes - 1; axis >= 0; axis--) {
    position += i % view.shape[axis] * view.strides[axis];
    i /= view.shape[axis];
  }
  return position;
}

__global__ void CompactKernel(const scalar_t* a, scalar_t* out, int64_t size, View view) {
  const int64_t i = GlobalIndex();
  if (i < size) out[i] = a[Position(i, view)];
}

void Compact(const CudaArray& a, CudaArray* out, const Dims& shape, const Dims& strides, int64_t offset) {
  const View view("compact", shape, strides, offset);
  CompactKernel<<<Grid(Blocks(out->size, kBlockThreads)), kBlockThreads>>>(a.ptr, out->ptr, out->size, view);
  CUDA_CHECK(cudaGetLastError());
}
/// STARTER
// __device__ inline int64_t Position(int64_t i, const View& view) {
//   return view.offset + i;  // to be written: right for a compact view alone
// }
//
// void Compact(const CudaArray& a, CudaArray* out, const Dims& shape, const Dims& strides, int64_t offset) {
//   throw NotImplemented("hw3/cuda_compact");
// }
/// END YOUR SOLUTION hw3/cuda_compact

/// Copy `a`, which is compact, into the view of `out` that shape, strides and offset describe.
void EwiseSetitem(const CudaArray& a, CudaArray* out, const Dims& shape, const Dims& strides, int64_t offset);

/// BEGIN YOUR SOLUTION hw3/cuda_ewise_setitem
__global__ void EwiseSetitemKernel(const scalar_t* a, scalar_t* out, int64_t size, View view) {
  const int64_t i = GlobalIndex();
  if (i < size) out[Position(i, view)] = a[i];
}

void EwiseSetitem(const CudaArray& a, CudaArray* out, const Dims& shape, const Dims& strides, int64_t offset) {
  const View view("ewise_setitem", shape, strides, offset);
  EwiseSetitemKernel<<<Grid(Blocks(a.size, kBlockThreads)), kBlockThreads>>>(a.ptr, out->ptr, a.size, view);
  CUDA_CHECK(cudaGetLastError());
}
/// STARTER
// void EwiseSetitem(const CudaArray& a, CudaArray* out, const Dims& shape, const Dims& strides, int64_t offset) {
//   throw NotImplemented("hw3/cuda_ewise_setitem");
// }
/// END YOUR SOLUTION hw3/cuda_ewise_setitem

/// Set the `size` elements of the view of `out` that shape, strides and offset describe to val.
void ScalarSetitem(size_t size, scalar_t val, CudaArray* out, const Dims& shape, const Dims& strides, int64_t offset);

/// BEGIN YOUR SOLUTION hw3/cuda_scalar_setitem
__global__ void ScalarSetitemKernel(scalar_t val, scalar_t* out, int64_t size, View view) {
  const int64_t i = GlobalIndex();
  if (i < size) out[Position(i, view)] = val;
}

void ScalarSetitem(size_t size, scalar_t val, CudaArray* out, const Dims& shape, const Dims& strides, int64_t offset) {
  const View view("scalar_setitem", shape, strides, offset);
  ScalarSetitemKernel<<<Grid(Blocks(size, kBlockThreads)), kBlockThreads>>>(val, out->ptr, size, view);
  CUDA_CHECK(cudaGetLastError());
}
/// STARTER
// void ScalarSetitem(size_t size, scalar_t val, CudaArray* out, const Dims& shape, const Dims& strides,
//                    int64_t offset) {
//   throw NotImplemented("hw3/cuda_scalar_setitem");
// }
/// END YOUR SOLUTION hw3/cuda_scalar_setitem

// ---- element-wise and scalar operations ---------------------------------------------------------------------------

/// The larger of two numbers; a NaN wins, as in NumPy.
__device__ inline scalar_t Max(scalar_t a, scalar_t b) {
  return a > b || std::isnan(a) ? a : b;
}

// clang-format off
//                   name     python name        out[i] from a[i] and b[i]
NEEDLE_EWISE_BINARY(Add,      "ewise_add",       a + b);
/// BEGIN YOUR SOLUTION hw3/cuda_ewise_mul
NEEDLE_EWISE_BINARY(Mul,      "ewise_mul",       a * b);
/// STARTER
// NEEDLE_EWISE_BINARY(Mul,      "ewise_mul",       Blank("hw3/cuda_ewise_mul"));
/// END YOUR SOLUTION hw3/cuda_ewise_mul
/// BEGIN YOUR SOLUTION hw3/cuda_ewise_div
NEEDLE_EWISE_BINARY(Div,      "ewise_div",       a / b);
/// STARTER
// NEEDLE_EWISE_BINARY(Div,      "ewise_div",       Blank("hw3/cuda_ewise_div"));
/// END YOUR SOLUTION hw3/cuda_ewise_div
/// BEGIN YOUR SOLUTION hw3/cuda_ewise_maximum
NEEDLE_EWISE_BINARY(Maximum,  "ewise_maximum",   Max(a, b));
/// STARTER
// NEEDLE_EWISE_BINARY(Maximum,  "ewise_maximum",   Blank("hw3/cuda_ewise_maximum"));
/// END YOUR SOLUTION hw3/cuda_ewise_maximum
/// BEGIN YOUR SOLUTION hw3/cuda_ewise_eq
NEEDLE_EWISE_BINARY(Eq,       "ewise_eq",        a == b);
/// STARTER
// NEEDLE_EWISE_BINARY(Eq,       "ewise_eq",        Blank("hw3/cuda_ewise_eq"));
/// END YOUR SOLUTION hw3/cuda_ewise_eq
/// BEGIN YOUR SOLUTION hw3/cuda_ewise_ge
NEEDLE_EWISE_BINARY(Ge,       "ewise_ge",        a >= b);
/// STARTER
// NEEDLE_EWISE_BINARY(Ge,       "ewise_ge",        Blank("hw3/cuda_ewise_ge"));
/// END YOUR SOLUTION hw3/cuda_ewise_ge

//                   name     python name        out[i] from a[i] and val
NEEDLE_EWISE_SCALAR(Add,      "scalar_add",      a + val);
/// BEGIN YOUR SOLUTION hw3/cuda_scalar_mul
NEEDLE_EWISE_SCALAR(Mul,      "scalar_mul",      a * val);
/// STARTER
// NEEDLE_EWISE_SCALAR(Mul,      "scalar_mul",      Blank("hw3/cuda_scalar_mul"));
/// END YOUR SOLUTION hw3/cuda_scalar_mul
/// BEGIN YOUR SOLUTION hw3/cuda_scalar_div
NEEDLE_EWISE_SCALAR(Div,      "scalar_div",      a / val);
/// STARTER
// NEEDLE_EWISE_SCALAR(Div,      "scalar_div",      Blank("hw3/cuda_scalar_div"));
/// END YOUR SOLUTION hw3/cuda_scalar_div
/// BEGIN YOUR SOLUTION hw3/cuda_scalar_power
NEEDLE_EWISE_SCALAR(Power,    "scalar_power",    powf(a, val));
/// STARTER
// NEEDLE_EWISE_SCALAR(Power,    "scalar_power",    Blank("hw3/cuda_scalar_power"));
/// END YOUR SOLUTION hw3/cuda_scalar_power
/// BEGIN YOUR SOLUTION hw3/cuda_scalar_maximum
NEEDLE_EWISE_SCALAR(Maximum,  "scalar_maximum",  Max(a, val));
/// STARTER
// NEEDLE_EWISE_SCALAR(Maximum,  "scalar_maximum",  Blank("hw3/cuda_scalar_maximum"));
/// END YOUR SOLUTION hw3/cuda_scalar_maximum
/// BEGIN YOUR SOLUTION hw3/cuda_scalar_eq
NEEDLE_EWISE_SCALAR(Eq,       "scalar_eq",       a == val);
/// STARTER
// NEEDLE_EWISE_SCALAR(Eq,       "scalar_eq",       Blank("hw3/cuda_scalar_eq"));
/// END YOUR SOLUTION hw3/cuda_scalar_eq
/// BEGIN YOUR SOLUTION hw3/cuda_scalar_ge
NEEDLE_EWISE_SCALAR(Ge,       "scalar_ge",       a >= val);
/// STARTER
// NEEDLE_EWISE_SCALAR(Ge,       "scalar_ge",       Blank("hw3/cuda_scalar_ge"));
/// END YOUR SOLUTION hw3/cuda_scalar_ge

//                   name     python name        out[i] from a[i]
/// BEGIN YOUR SOLUTION hw3/cuda_ewise_log
NEEDLE_EWISE_UNARY(Log,       "ewise_log",       logf(a));
/// STARTER
// NEEDLE_EWISE_UNARY(Log,       "ewise_log",       Blank("hw3/cuda_ewise_log"));
/// END YOUR SOLUTION hw3/cuda_ewise_log
/// BEGIN YOUR SOLUTION hw3/cuda_ewise_exp
NEEDLE_EWISE_UNARY(Exp,       "ewise_exp",       expf(a));
/// STARTER
// NEEDLE_EWISE_UNARY(Exp,       "ewise_exp",       Blank("hw3/cuda_ewise_exp"));
/// END YOUR SOLUTION hw3/cuda_ewise_exp
/// BEGIN YOUR SOLUTION hw3/cuda_ewise_tanh
NEEDLE_EWISE_UNARY(Tanh,      "ewise_tanh",      tanhf(a));
/// STARTER
// NEEDLE_EWISE_UNARY(Tanh,      "ewise_tanh",      Blank("hw3/cuda_ewise_tanh"));
/// END YOUR SOLUTION hw3/cuda_ewise_tanh
// clang-format on

// ---- matrix multiplication ----------------------------------------------------------------------------------------

/// out = a @ b: (m, n) times (n, p), all row-major.
void Matmul(const CudaArray& a, const CudaArray& b, CudaArray* out, int64_t m, int64_t n, int64_t p);

/// BEGIN YOUR SOLUTION hw3/cuda_matmul
constexpr int kTile = 16;  // a block of 16 x 16 threads computes a tile of out, an element each

/// Every element of a is needed for p elements of out.  So the threads of a block first load a tile of a and one of b
/// into shared memory together, each an element, and then all compute with them: the device's memory is read kTile
/// times less often.
__global__ void MatmulKernel(const scalar_t* a, const scalar_t* b, scalar_t* out, int64_t m, int64_t n, int64_t p) {
  __shared__ scalar_t a_tile[kTile][kTile];
  __shared__ scalar_t b_tile[kTile][kTile];
  const int64_t tiles_in_a_row = Blocks(p, kTile);
  const int row = threadIdx.y, column = threadIdx.x;  // in the tile; neighbouring threads are neighbouring columns
  const int64_t i = blockIdx.x / tiles_in_a_row * kTile + row, j = blockIdx.x % tiles_in_a_row * kTile + column;

  scalar_t sum = 0;
  for (int64_t start = 0; start < n; start += kTile) {
    // what lies outside a matrix counts as 0, which adds nothing
    a_tile[row][column] = i < m && start + column < n ? a[i * n + start + column] : 0;
    b_tile[row][column] = start + row < n && j < p ? b[(start + row) * p + j] : 0;
    __syncthreads();  // before anyone reads what others still load
    for (int k = 0; k < kTile; k++) sum += a_tile[row][k] * b_tile[k][column];
    __syncthreads();  // before anyone loads over what others still read
  }
  if (i < m && j < p) out[i * p + j] = sum;
}

void Matmul(const CudaArray& a, const CudaArray& b, CudaArray* out, int64_t m, int64_t n, int64_t p) {
  const dim3 grid = Grid(Blocks(m, kTile) * Blocks(p, kTile));
  MatmulKernel<<<grid, dim3(kTile, kTile)>>>(a.ptr, b.ptr, out->ptr, m, n, p);
  CUDA_CHECK(cudaGetLastError());
}
/// STARTER
// void Matmul(const CudaArray& a, const CudaArray& b, CudaArray* out, int64_t m, int64_t n, int64_t p) {
//   throw NotImplemented("hw3/cuda_matmul");
// }
/// END YOUR SOLUTION hw3/cuda_matmul

// ---- reductions ---------------------------------------------------------------------------------------------------

/// out[i] = the maximum of the i-th run of reduce_size elements of `a`.
void ReduceMax(const CudaArray& a, CudaArray* out, size_t reduce_size);

/// BEGIN YOUR SOLUTION hw3/cuda_reduce_max
__global__ void ReduceMaxKernel(const scalar_t* a, scalar_t* out, int64_t size, int64_t reduce_size) {
  const int64_t i = GlobalIndex();
  if (i >= size) return;
  const scalar_t* run = a + i * reduce_size;
  scalar_t largest = run[0];
  for (int64_t k = 1; k < reduce_size; k++) largest = Max(largest, run[k]);
  out[i] = largest;
}

void ReduceMax(const CudaArray& a, CudaArray* out, size_t reduce_size) {
  const dim3 grid = Grid(Blocks(out->size, kBlockThreads));
  ReduceMaxKernel<<<grid, kBlockThreads>>>(a.ptr, out->ptr, out->size, reduce_size);
  CUDA_CHECK(cudaGetLastError());
}
/// STARTER
// void ReduceMax(const CudaArray& a, CudaArray* out, size_t reduce_size) {
//   throw NotImplemented("hw3/cuda_reduce_max");
// }
/// END YOUR SOLUTION hw3/cuda_reduce_max

/// out[i] = the sum of the i-th run of reduce_size elements of `a`.
void ReduceSum(const CudaArray& a, CudaArray* out, size_t reduce_size);

/// BEGIN YOUR SOLUTION hw3/cuda_reduce_sum
__global__ void ReduceSumKernel(const scalar_t* a, scalar_t* out, int64_t size, int64_t reduce_size) {
  const int64_t i = GlobalIndex();
  if (i >= size) return;
  const scalar_t* run = a + i * reduce_size;
  scalar_t sum = 0;
  for (int64_t k = 0; k < reduce_size; k++) sum += run[k];
  out[i] = sum;
}

void ReduceSum(const CudaArray& a, CudaArray* out, size_t reduce_size) {
  const dim3 grid = Grid(Blocks(out->size, kBlockThreads));
  ReduceSumKernel<<<grid, kBlockThreads>>>(a.ptr, out->ptr, out->size, reduce_size);
  CUDA_CHECK(cudaGetLastError());
}
/// STARTER
// void ReduceSum(const CudaArray& a, CudaArray* out, size_t reduce_size) {
//   throw NotImplemented("hw3/cuda_reduce_sum");
// }
/// END YOUR SOLUTION hw3/cuda_reduce_sum

}  // namespace cuda
}  // namespace needle
