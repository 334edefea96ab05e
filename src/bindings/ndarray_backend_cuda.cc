// The Python modules around the course's CUDA file: checks, then the kernel, with the GIL released.
//
// One source serves the GPU and both builds of the emulator, which differ in the name of the module alone.  Like the
// bindings of the CPU's file they wait in an archive, of which the linker takes nothing if the kernel file has a
// PYBIND11_MODULE itself.
#include <utility>

#include "../checks.h"
#include "../cuda_array.h"
#include "ndarray_backend_checked.h"

namespace needle {
namespace cuda {

// what the kernel file defines besides its registered rows
void Fill(CudaArray* out, scalar_t val);
void Compact(const CudaArray& a, CudaArray* out, const Dims& shape, const Dims& strides, int64_t offset);
void EwiseSetitem(const CudaArray& a, CudaArray* out, const Dims& shape, const Dims& strides, int64_t offset);
void ScalarSetitem(size_t size, scalar_t val, CudaArray* out, const Dims& shape, const Dims& strides, int64_t offset);
void Matmul(const CudaArray& a, const CudaArray& b, CudaArray* out, int64_t m, int64_t n, int64_t p);
void ReduceMax(const CudaArray& a, CudaArray* out, size_t reduce_size);
void ReduceSum(const CudaArray& a, CudaArray* out, size_t reduce_size);

namespace {

/// What Python calls Array.
struct Array : ArrayOf<CudaArray> {
  using ArrayOf::ArrayOf;
  static constexpr bool kReducesInPlace = false;  // threads write their results while others still read
};

// ---- storage ------------------------------------------------------------------------------------------------------

/// The first and the last position that a view which is not empty reaches.
std::pair<int64_t, int64_t> Reach(const Dims& shape, const Dims& strides, int64_t offset) {
  int64_t first = offset, last = offset;
  for (size_t axis = 0; axis < shape.size(); axis++) {
    const int64_t reach = (shape[axis] - 1) * strides[axis];
    (reach < 0 ? first : last) += reach;
  }
  return {first, last};
}

py::array ToNumpy(const Array& a, const Dims& shape, const Dims& strides, int64_t offset) {
  const Dims safe = CheckedStrides("to_numpy", shape, strides, offset, a.length());
  if (CheckedSize("to_numpy", shape) == 0) return py::array_t<scalar_t>(shape);
  const auto [first, last] = Reach(shape, safe, offset);
  py::array_t<scalar_t> reached(last - first + 1);  // copied as it lies; NumPy sees to the strides
  {
    scalar_t* to = reached.mutable_data();
    py::gil_scoped_release release;
    CopyToHost(a, first, last - first + 1, to);
  }
  return CopyOfView(shape, safe, reached.data() + offset - first, reached);
}

void FromNumpy(const FloatArray& from, Array& out) {
  CheckSize("from_numpy", "the NumPy array", from.size(), out.length());
  const scalar_t* data = from.data();
  py::gil_scoped_release release;
  if (out.size) CopyFromHost(data, out);
}

// ---- the module -----------------------------------------------------------------------------------------------------

void ExportArray(py::module_& m) {
  ArrayType<Array>::Export(m);
  m.def("to_numpy", &ToNumpy, py::arg("a"), py::arg("shape"), py::arg("strides"), py::arg("offset"));
  m.def("from_numpy", &FromNumpy, py::arg("np_array"), py::arg("out"));
  // two addresses of functions: the one thing here that trusts its caller, who is needle alone
  m.def("_set_memory_source", [](uintptr_t allocate, uintptr_t free) {
    SetMemorySource(
        {reinterpret_cast<void* (*)(int64_t)>(allocate), reinterpret_cast<void (*)(void*, int64_t) noexcept>(free)});
  });
  m.def("device_facts", [] {
    const DeviceFacts facts = FirstDevice();
    py::dict row;
    row["name"] = facts.name;
    row["memory"] = facts.memory;
    row["capability"] = facts.capability;
    return row;
  });
}

void Export(py::module_& m, const char* device_name) {
  m.doc() = "The course's CUDA kernels on flat float32 storage.";
  m.attr("__device_name__") = device_name;
  py::register_local_exception_translator(&TranslateNotImplemented);
  ExportArray(m);
  ExportFixed<Array>(m);
  ExportRegistered<Array, EwiseUnary, EwiseBinary, EwiseScalar>(m);
}

}  // namespace

PYBIND11_MODULE(ndarray_backend_cuda, m) {
  Export(m, "cuda");
}
PYBIND11_MODULE(ndarray_backend_cuda_emu, m) {
  Export(m, "cuda (emulated)");
}
PYBIND11_MODULE(ndarray_backend_cuda_emu_check, m) {
  Export(m, "cuda (emulated, checked)");
}

}  // namespace cuda
}  // namespace needle
