// The Python modules around the course's CUDA file: checks, then the kernel, with the GIL released.
//
// One source serves the GPU and both builds of the emulator, which differ in the name of the module alone.  Like the
// bindings of the CPU's file they wait in an archive, of which the linker takes nothing if the kernel file has a
// PYBIND11_MODULE itself.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "../checks.h"
#include "../cuda_array.h"

namespace py = pybind11;

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

using FloatArray = py::array_t<scalar_t, py::array::c_style | py::array::forcecast>;
using ReleaseGil = py::call_guard<py::gil_scoped_release>;

/// What Python calls Array.
struct Array : CudaArray {
  using CudaArray::CudaArray;

  // zeroed, so that an object whose __init__ never ran is an empty array
  static void* operator new(size_t bytes) {
    if (void* memory = std::calloc(1, bytes)) return memory;
    throw std::bad_alloc();
  }
  static void operator delete(void* memory) { std::free(memory); }

  int64_t length() const { return static_cast<int64_t>(size); }
};

bool Overlap(const Array& a, const Array& b) {
  return a.ptr < b.ptr + b.size && b.ptr < a.ptr + a.size;
}

// ---- storage ------------------------------------------------------------------------------------------------------

std::unique_ptr<Array> MakeArray(int64_t size) {
  if (size < 0) Refuse("Array", "size " + std::to_string(size) + " is negative");
  return std::make_unique<Array>(static_cast<size_t>(size));
}

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
  Dims bytes;
  for (int64_t stride : safe) bytes.push_back(stride * static_cast<int64_t>(sizeof(scalar_t)));
  return py::array_t<scalar_t>(shape, bytes, reached.data() + offset - first, reached).attr("copy")();
}

void FromNumpy(const FloatArray& from, Array& out) {
  CheckSize("from_numpy", "the NumPy array", from.size(), out.length());
  const scalar_t* data = from.data();
  py::gil_scoped_release release;
  if (out.size) CopyFromHost(data, out);
}

// ---- the fixed kernels ----------------------------------------------------------------------------------------------

void CheckedFill(Array& out, scalar_t val) {
  if (out.size) Fill(&out, val);
}

void CheckedCompact(const Array& a, Array& out, const Dims& shape, const Dims& strides, int64_t offset) {
  const Dims safe = CheckedStrides("compact", shape, strides, offset, a.length());
  CheckSize("compact", "out", out.length(), CheckedSize("compact", shape));
  if (out.size) Compact(a, &out, shape, safe, offset);
}

void CheckedEwiseSetitem(const Array& a, Array& out, const Dims& shape, const Dims& strides, int64_t offset) {
  const Dims safe = CheckedStrides("ewise_setitem", shape, strides, offset, out.length());
  CheckSize("ewise_setitem", "a", a.length(), CheckedSize("ewise_setitem", shape));
  if (!a.size) return;
  if (!Overlap(a, out)) return EwiseSetitem(a, &out, shape, safe, offset);
  CudaArray copy(a.size);  // x[::-1] = x: read all of it before the first write
  CopyWithinDevice(a, copy);
  EwiseSetitem(copy, &out, shape, safe, offset);
}

void CheckedScalarSetitem(int64_t size, scalar_t val, Array& out, const Dims& shape, const Dims& strides,
                          int64_t offset) {
  const Dims safe = CheckedStrides("scalar_setitem", shape, strides, offset, out.length());
  CheckSize("scalar_setitem", "the shape", CheckedSize("scalar_setitem", shape), size);
  if (size == 0) return;
  const Dims once = WithoutRepeats(shape, safe);
  ScalarSetitem(static_cast<size_t>(CheckedSize("scalar_setitem", once)), val, &out, once, safe, offset);
}

void CheckReduce(const char* who, const Array& a, const Array& out, int64_t reduce_size) {
  CheckSize(who, "a", a.length(), CheckedSize(who, {out.length(), reduce_size}));
  if (Overlap(a, out)) Refuse(who, "out shares memory with a");
}

void CheckedReduceMax(const Array& a, Array& out, int64_t reduce_size) {
  CheckReduce("reduce_max", a, out, reduce_size);
  if (out.size && reduce_size == 0) Refuse("reduce_max", "runs of 0 elements have no maximum");
  if (out.size) ReduceMax(a, &out, static_cast<size_t>(reduce_size));
}

void CheckedReduceSum(const Array& a, Array& out, int64_t reduce_size) {
  CheckReduce("reduce_sum", a, out, reduce_size);
  if (out.size) ReduceSum(a, &out, static_cast<size_t>(reduce_size));
}

void CheckedMatmul(const Array& a, const Array& b, Array& out, int64_t m, int64_t n, int64_t p) {
  CheckSize("matmul", "a", a.length(), CheckedSize("matmul", {m, n}));
  CheckSize("matmul", "b", b.length(), CheckedSize("matmul", {n, p}));
  CheckSize("matmul", "out", out.length(), CheckedSize("matmul", {m, p}));
  if (Overlap(a, out) || Overlap(b, out)) Refuse("matmul", "out shares memory with an operand");
  if (out.size) Matmul(a, b, &out, m, n, p);
}

// ---- the module -----------------------------------------------------------------------------------------------------

void ExportArray(py::module_& m) {
  py::class_<Array>(m, "Array", py::module_local())
      .def(py::init(&MakeArray), py::arg("size"))
      .def_property_readonly("size", &Array::length)
      .def("ptr", [](const Array& a) { return reinterpret_cast<uintptr_t>(a.ptr); });
  m.def("to_numpy", &ToNumpy, py::arg("a"), py::arg("shape"), py::arg("strides"), py::arg("offset"));
  m.def("from_numpy", &FromNumpy, py::arg("np_array"), py::arg("out"));
  // two addresses of functions: the one thing here that trusts its caller, who is needle alone
  m.def("_set_memory_source", [](uintptr_t allocate, uintptr_t free) {
    SetMemorySource({reinterpret_cast<void* (*)(int64_t)>(allocate),
                     reinterpret_cast<void (*)(void*, int64_t) noexcept>(free)});
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

void ExportFixed(py::module_& m) {
  const py::arg a("a"), b("b"), out("out"), val("val"), shape("shape"), strides("strides"), offset("offset");
  m.def("fill", &CheckedFill, out, val, ReleaseGil());
  m.def("compact", &CheckedCompact, a, out, shape, strides, offset, ReleaseGil());
  m.def("ewise_setitem", &CheckedEwiseSetitem, a, out, shape, strides, offset, ReleaseGil());
  m.def("scalar_setitem", &CheckedScalarSetitem, py::arg("size"), val, out, shape, strides, offset, ReleaseGil());
  m.def("matmul", &CheckedMatmul, a, b, out, py::arg("m"), py::arg("n"), py::arg("p"), ReleaseGil());
  m.def("reduce_max", &CheckedReduceMax, a, out, py::arg("reduce_size"), ReleaseGil());
  m.def("reduce_sum", &CheckedReduceSum, a, out, py::arg("reduce_size"), ReleaseGil());
}

void ExportRegistered(py::module_& m) {
  const py::arg a("a"), b("b"), out("out"), val("val");
  for (const auto& row : Registered<EwiseUnary>::Rows()) {
    auto checked = [row](const Array& a, Array& out) {
      CheckSize(row.name, "out", out.length(), a.length());
      if (out.size) row.kernel(a, &out);
    };
    m.def(row.name, checked, a, out, ReleaseGil());
  }
  for (const auto& row : Registered<EwiseBinary>::Rows()) {
    auto checked = [row](const Array& a, const Array& b, Array& out) {
      CheckSize(row.name, "b", b.length(), a.length());
      CheckSize(row.name, "out", out.length(), a.length());
      if (out.size) row.kernel(a, b, &out);
    };
    m.def(row.name, checked, a, b, out, ReleaseGil());
  }
  for (const auto& row : Registered<EwiseScalar>::Rows()) {
    auto checked = [row](const Array& a, scalar_t val, Array& out) {
      CheckSize(row.name, "out", out.length(), a.length());
      if (out.size) row.kernel(a, val, &out);
    };
    m.def(row.name, checked, a, val, out, ReleaseGil());
  }
}

void TranslateNotImplemented(std::exception_ptr thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const NotImplemented& error) {
    py::set_error(PyExc_NotImplementedError, error.what());
  }
}

void Export(py::module_& m, const char* device_name) {
  m.doc() = "The course's CUDA kernels on flat float32 storage.";
  m.attr("__device_name__") = device_name;
  py::register_local_exception_translator(&TranslateNotImplemented);
  ExportArray(m);
  ExportFixed(m);
  ExportRegistered(m);
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
