// A CUDA file in the layout of the public course: storage, launch helpers, kernels and PYBIND11_MODULE in one file that
// includes nothing of ours.  tests/cuda/test_builds.py has it built, as it is, by nvcc and by the emulator, in place of
// src/ndarray_backend_cuda.cu.
#include <cuda_runtime.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <iostream>
#include <sstream>

namespace needle {
namespace cuda {

#define BASE_THREAD_NUM 256
#define TILE 4
#define MAX_VEC_SIZE 8

typedef float scalar_t;
const size_t ELEM_SIZE = sizeof(scalar_t);

struct CudaArray {  // the name of ours in the namespace of ours, and not the same thing
  CudaArray(const size_t size) {
    cudaError_t err = cudaMalloc(&ptr, size * ELEM_SIZE);
    if (err != cudaSuccess) throw std::runtime_error(cudaGetErrorString(err));
    this->size = size;
  }
  ~CudaArray() { cudaFree(ptr); }
  size_t ptr_as_int() { return (size_t)ptr; }
  scalar_t* ptr;
  size_t size;
};

struct CudaDims {
  dim3 block, grid;
};

CudaDims OneDim(size_t size) {
  CudaDims dim;
  size_t num_blocks = (size + BASE_THREAD_NUM - 1) / BASE_THREAD_NUM;
  dim.block = dim3(BASE_THREAD_NUM, 1, 1);
  dim.grid = dim3(num_blocks, 1, 1);
  return dim;
}

struct CudaVec {
  uint32_t size;
  int32_t data[MAX_VEC_SIZE];
};

CudaVec ToCuda(const std::vector<int32_t>& x) {
  CudaVec vec;
  if (x.size() > MAX_VEC_SIZE) {
    std::ostringstream message;
    message << x.size() << " dimensions are too many";
    throw std::runtime_error(message.str());
  }
  vec.size = x.size();
  for (size_t i = 0; i < x.size(); i++) vec.data[i] = x[i];
  return vec;
}

__global__ void FillKernel(scalar_t* out, scalar_t val, size_t size) {
  size_t gid = blockIdx.x * blockDim.x + threadIdx.x;
  if (gid < size) out[gid] = val;
}

void Fill(CudaArray* out, scalar_t val) {
  CudaDims dim = OneDim(out->size);
  FillKernel<<<dim.grid, dim.block>>>(out->ptr, val, out->size);
}

__device__ size_t IndexOf(size_t gid, const CudaVec& shape, const CudaVec& strides, size_t offset) {
  size_t index = offset;
  for (int i = shape.size - 1; i >= 0; --i) {
    index += strides.data[i] * (gid % shape.data[i]);
    gid /= shape.data[i];
  }
  return index;
}

__global__ void CompactKernel(const scalar_t* a, scalar_t* out, size_t size, CudaVec shape, CudaVec strides,
                              size_t offset) {
  size_t gid = blockIdx.x * blockDim.x + threadIdx.x;
  if (gid < size) out[gid] = a[IndexOf(gid, shape, strides, offset)];
}

void Compact(const CudaArray& a, CudaArray* out, std::vector<int32_t> shape, std::vector<int32_t> strides,
             size_t offset) {
  CudaDims dim = OneDim(out->size);
  CompactKernel<<<dim.grid, dim.block>>>(a.ptr, out->ptr, out->size, ToCuda(shape), ToCuda(strides), offset);
}

enum Op { ADD, MUL, MAXIMUM };

template <Op op>
__global__ void EwiseKernel(const scalar_t* a, const scalar_t* b, scalar_t* out, size_t size) {
  size_t gid = blockIdx.x * blockDim.x + threadIdx.x;
  if (gid >= size) return;
  if (op == ADD) out[gid] = a[gid] + b[gid];
  if (op == MUL) out[gid] = a[gid] * b[gid];
  if (op == MAXIMUM) out[gid] = max(a[gid], b[gid]);
}

#define EWISE(Name, op)                                                                \
  void Name(const CudaArray& a, const CudaArray& b, CudaArray* out) {                  \
    CudaDims dim = OneDim(out->size);                                                  \
    EwiseKernel<op><<<dim.grid, dim.block>>>(a.ptr, b.ptr, out->ptr, out->size);       \
  }

EWISE(EwiseAdd, ADD)
EWISE(EwiseMul, MUL)
EWISE(EwiseMaximum, MAXIMUM)

__global__ void TanhKernel(const scalar_t* a, scalar_t* out, size_t size) {
  size_t gid = blockIdx.x * blockDim.x + threadIdx.x;
  if (gid < size) out[gid] = isnan(a[gid]) ? a[gid] : tanh(a[gid]);
}

void EwiseTanh(const CudaArray& a, CudaArray* out) {
  CudaDims dim = OneDim(out->size);
  TanhKernel<<<dim.grid, dim.block>>>(a.ptr, out->ptr, out->size);
}

__global__ void MatmulKernel(const scalar_t* a, const scalar_t* b, scalar_t* out, uint32_t M, uint32_t N, uint32_t P) {
  __shared__ scalar_t left[TILE * TILE][TILE], right[TILE][TILE * TILE];
  uint32_t row = blockIdx.y * TILE * TILE + threadIdx.y, col = blockIdx.x * TILE * TILE + threadIdx.x;
  scalar_t sum = 0;
  for (uint32_t start = 0; start < N; start += TILE) {
    if (threadIdx.x < TILE) {
      bool inside = row < M && start + threadIdx.x < N;
      left[threadIdx.y][threadIdx.x] = inside ? a[row * N + start + threadIdx.x] : 0;
    }
    if (threadIdx.y < TILE) {
      bool inside = col < P && start + threadIdx.y < N;
      right[threadIdx.y][threadIdx.x] = inside ? b[(start + threadIdx.y) * P + col] : 0;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < TILE; ++k) sum += left[threadIdx.y][k] * right[k][threadIdx.x];
    __syncthreads();
  }
  if (row < M && col < P) out[row * P + col] = sum;
}

void Matmul(const CudaArray& a, const CudaArray& b, CudaArray* out, uint32_t M, uint32_t N, uint32_t P) {
  dim3 block(TILE * TILE, TILE * TILE, 1);
  dim3 grid((P + block.x - 1) / block.x, (M + block.y - 1) / block.y, 1);
  MatmulKernel<<<grid, block>>>(a.ptr, b.ptr, out->ptr, M, N, P);
}

// a block adds up each run, in shared memory of a size that the launch gives
__global__ void ReduceSumKernel(const scalar_t* a, scalar_t* out, size_t reduce_size) {
  extern __shared__ scalar_t partial[];
  scalar_t sum = 0;
  for (size_t i = threadIdx.x; i < reduce_size; i += blockDim.x) sum += a[blockIdx.x * reduce_size + i];
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half >>= 1) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = partial[0];
}

void ReduceSum(const CudaArray& a, CudaArray* out, size_t reduce_size) {
  ReduceSumKernel<<<out->size, BASE_THREAD_NUM, BASE_THREAD_NUM * ELEM_SIZE>>>(a.ptr, out->ptr, reduce_size);
}

}  // namespace cuda
}  // namespace needle

PYBIND11_MODULE(ndarray_backend_cuda, m) {
  namespace py = pybind11;
  using namespace needle;
  using namespace cuda;

  m.attr("__device_name__") = "cuda";
  m.attr("__tile_size__") = TILE;
  m.attr("layout") = "public";

  py::class_<CudaArray>(m, "Array")
      .def(py::init<size_t>(), py::return_value_policy::take_ownership)
      .def_readonly("size", &CudaArray::size)
      .def("ptr", &CudaArray::ptr_as_int);

  m.def("to_numpy", [](const CudaArray& a, std::vector<size_t> shape, std::vector<size_t> strides, size_t offset) {
    std::vector<size_t> numpy_strides = strides;
    for (size_t& stride : numpy_strides) stride *= ELEM_SIZE;
    scalar_t* host_ptr = (scalar_t*)std::malloc(a.size * ELEM_SIZE);
    if (host_ptr == 0) throw std::bad_alloc();
    cudaError_t err = cudaMemcpy(host_ptr, a.ptr, a.size * ELEM_SIZE, cudaMemcpyDeviceToHost);
    if (err != cudaSuccess) throw std::runtime_error(cudaGetErrorString(err));
    py::capsule deallocate(host_ptr, [](void* p) { free(p); });
    return py::array_t<scalar_t>(shape, numpy_strides, host_ptr + offset, deallocate);
  });
  m.def("from_numpy", [](py::array_t<scalar_t> a, CudaArray* out) {
    cudaError_t err = cudaMemcpy(out->ptr, a.request().ptr, out->size * ELEM_SIZE, cudaMemcpyHostToDevice);
    if (err != cudaSuccess) throw std::runtime_error(cudaGetErrorString(err));
  });

  m.def("fill", Fill);
  m.def("compact", Compact);
  m.def("ewise_add", EwiseAdd);
  m.def("ewise_mul", EwiseMul);
  m.def("ewise_maximum", EwiseMaximum);
  m.def("ewise_tanh", EwiseTanh);
  m.def("matmul", Matmul);
  m.def("reduce_sum", ReduceSum);
}
