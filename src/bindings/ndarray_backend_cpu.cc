// The Python module around the course's kernel file: checks, then the kernel, with the GIL released.
//
// Compiled once, into an archive of its own: the linker takes it only if the kernel file has no PYBIND11_MODULE itself.
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

#include "../aligned_array.h"
#include "../checks.h"

namespace py = pybind11;

namespace needle {
namespace cpu {

// what the kernel file defines besides its registered rows
void Fill(AlignedArray* out, scalar_t val);
void Compact(const AlignedArray& a, AlignedArray* out, const Dims& shape, const Dims& strides, int64_t offset);
void EwiseSetitem(const AlignedArray& a, AlignedArray* out, const Dims& shape, const Dims& strides, int64_t offset);
void ScalarSetitem(size_t size, scalar_t val, AlignedArray* out, const Dims& shape, const Dims& strides,
                   int64_t offset);
void Matmul(const AlignedArray& a, const AlignedArray& b, AlignedArray* out, int64_t m, int64_t n, int64_t p);
void MatmulTiled(const AlignedArray& a, const AlignedArray& b, AlignedArray* out, int64_t m, int64_t n, int64_t p);
void ReduceMax(const AlignedArray& a, AlignedArray* out, size_t reduce_size);
void ReduceSum(const AlignedArray& a, AlignedArray* out, size_t reduce_size);

namespace {

using FloatArray = py::array_t<scalar_t, py::array::c_style | py::array::forcecast>;

/// What Python calls Array: storage of its own, or, from wrap(), memory that a NumPy array owns and is kept alive for.
struct Array : AlignedArray {
  explicit Array(size_t size) : AlignedArray(size) {}
  Array(scalar_t* memory, size_t size, py::object owner) : AlignedArray(memory, size), owner(std::move(owner)) {}
  ~Array() {
    if (owner) ptr = nullptr;
  }

  // zeroed, so that an object whose __init__ never ran is an empty array
  static void* operator new(size_t bytes) {
    if (void* memory = std::calloc(1, bytes)) return memory;
    throw std::bad_alloc();
  }
  static void operator delete(void* memory) { std::free(memory); }

  int64_t length() const { return static_cast<int64_t>(size); }

  py::object owner;  // not py::keep_alive, which in pybind11 3.1 crashes on an argument of the wrong type
};

bool Overlap(const Array& a, const Array& b) {
  return a.ptr < b.ptr + b.size && b.ptr < a.ptr + a.size;
}

void CopyElements(const AlignedArray& from, AlignedArray& to) {
  std::copy(from.ptr, from.ptr + from.size, to.ptr);
}

// ---- storage ------------------------------------------------------------------------------------------------------

std::unique_ptr<Array> MakeArray(int64_t size) {
  if (size < 0) Refuse("Array", "size " + std::to_string(size) + " is negative");
  return std::make_unique<Array>(static_cast<size_t>(size));
}

std::unique_ptr<Array> Wrap(const py::array& memory) {
  const int wanted = py::array::c_style | py::detail::npy_api::NPY_ARRAY_ALIGNED_;
  if (!py::isinstance<py::array_t<scalar_t>>(memory) || (memory.flags() & wanted) != wanted || !memory.writeable()) {
    throw py::type_error("wrap: wanted a C-contiguous, aligned, writable float32 array");
  }
  auto* data = const_cast<scalar_t*>(static_cast<const scalar_t*>(memory.data()));
  return std::make_unique<Array>(data, static_cast<size_t>(memory.size()), memory);
}

py::array ToNumpy(const py::object& self, const Dims& shape, const Dims& strides, int64_t offset) {
  auto& a = self.cast<Array&>();
  const Dims safe = CheckedStrides("to_numpy", shape, strides, offset, a.length());
  if (CheckedSize("to_numpy", shape) == 0) return py::array_t<scalar_t>(shape);
  Dims bytes;
  for (int64_t stride : safe) bytes.push_back(stride * static_cast<int64_t>(sizeof(scalar_t)));
  return py::array_t<scalar_t>(shape, bytes, a.ptr + offset, self).attr("copy")();
}

void FromNumpy(const FloatArray& from, Array& out) {
  CheckSize("from_numpy", "the NumPy array", from.size(), out.length());
  std::copy(from.data(), from.data() + from.size(), out.ptr);
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
  AlignedArray copy(a.size);  // x[::-1] = x: read all of it before the first write
  CopyElements(a, copy);
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

void CheckProduct(const char* who, const Array& a, const Array& b, const Array& out, int64_t m, int64_t n, int64_t p) {
  CheckSize(who, "a", a.length(), CheckedSize(who, {m, n}));
  CheckSize(who, "b", b.length(), CheckedSize(who, {n, p}));
  CheckSize(who, "out", out.length(), CheckedSize(who, {m, p}));
  if (Overlap(a, out) || Overlap(b, out)) Refuse(who, "out shares memory with an operand");
}

void CheckedMatmul(const Array& a, const Array& b, Array& out, int64_t m, int64_t n, int64_t p) {
  CheckProduct("matmul", a, b, out, m, n, p);
  if (out.size) Matmul(a, b, &out, m, n, p);
}

bool IsAligned(const Array& a) {
  return reinterpret_cast<uintptr_t>(a.ptr) % kAlignment == 0;
}

void CheckedMatmulTiled(const Array& a, const Array& b, Array& out, int64_t m, int64_t n, int64_t p) {
  CheckProduct("matmul_tiled", a, b, out, m, n, p);
  for (int64_t extent : {m, n, p}) {
    if (extent % static_cast<int64_t>(kTile)) {
      Refuse("matmul_tiled", "sizes " + Text({m, n, p}) + ", wanted multiples of " + std::to_string(kTile));
    }
  }
  if (!out.size) return;
  if (IsAligned(a) && IsAligned(b) && IsAligned(out)) return MatmulTiled(a, b, &out, m, n, p);
  AlignedArray left(a.size), right(b.size), product(out.size);  // wrapped memory need not be aligned
  CopyElements(a, left);
  CopyElements(b, right);
  MatmulTiled(left, right, &product, m, n, p);
  CopyElements(product, out);
}

// ---- the module -----------------------------------------------------------------------------------------------------

void ExportArray(py::module_& m) {
  py::class_<Array>(m, "Array", py::buffer_protocol(), py::module_local())
      .def(py::init(&MakeArray), py::arg("size"))
      .def_property_readonly("size", &Array::length)
      .def("ptr", [](const Array& a) { return reinterpret_cast<uintptr_t>(a.ptr); })
      .def_buffer([](Array& a) { return py::buffer_info(a.ptr, a.length()); });
  m.def("wrap", &Wrap, py::arg("np_array"));
  m.def("to_numpy", &ToNumpy, py::arg("a"), py::arg("shape"), py::arg("strides"), py::arg("offset"));
  m.def("from_numpy", &FromNumpy, py::arg("np_array"), py::arg("out"));
}

void ExportFixed(py::module_& m) {
  const py::arg a("a"), b("b"), out("out"), val("val"), shape("shape"), strides("strides"), offset("offset");
  const py::call_guard<py::gil_scoped_release> release_gil;
  m.def("fill", &CheckedFill, out, val, release_gil);
  m.def("compact", &CheckedCompact, a, out, shape, strides, offset, release_gil);
  m.def("ewise_setitem", &CheckedEwiseSetitem, a, out, shape, strides, offset, release_gil);
  m.def("scalar_setitem", &CheckedScalarSetitem, py::arg("size"), val, out, shape, strides, offset, release_gil);
  m.def("matmul", &CheckedMatmul, a, b, out, py::arg("m"), py::arg("n"), py::arg("p"), release_gil);
  m.def("matmul_tiled", &CheckedMatmulTiled, a, b, out, py::arg("m"), py::arg("n"), py::arg("p"), release_gil);
  m.def("reduce_max", &CheckedReduceMax, a, out, py::arg("reduce_size"), release_gil);
  m.def("reduce_sum", &CheckedReduceSum, a, out, py::arg("reduce_size"), release_gil);
}

void ExportRegistered(py::module_& m) {
  const py::arg a("a"), b("b"), out("out"), val("val");
  const py::call_guard<py::gil_scoped_release> release_gil;
  for (const auto& row : Registered<EwiseUnary>::Rows()) {
    auto checked = [row](const Array& a, Array& out) {
      CheckSize(row.name, "out", out.length(), a.length());
      if (out.size) row.kernel(a, &out);
    };
    m.def(row.name, checked, a, out, release_gil);
  }
  for (const auto& row : Registered<EwiseBinary>::Rows()) {
    auto checked = [row](const Array& a, const Array& b, Array& out) {
      CheckSize(row.name, "b", b.length(), a.length());
      CheckSize(row.name, "out", out.length(), a.length());
      if (out.size) row.kernel(a, b, &out);
    };
    m.def(row.name, checked, a, b, out, release_gil);
  }
  for (const auto& row : Registered<EwiseScalar>::Rows()) {
    auto checked = [row](const Array& a, scalar_t val, Array& out) {
      CheckSize(row.name, "out", out.length(), a.length());
      if (out.size) row.kernel(a, val, &out);
    };
    m.def(row.name, checked, a, val, out, release_gil);
  }
}

void TranslateNotImplemented(std::exception_ptr thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const NotImplemented& error) {
    py::set_error(PyExc_NotImplementedError, error.what());
  }
}

}  // namespace

PYBIND11_MODULE(ndarray_backend_cpu, m) {
  m.doc() = "The course's CPU kernels on flat float32 storage.";
  m.attr("__device_name__") = "cpu";
  m.attr("__tile_size__") = kTile;
  py::register_local_exception_translator(&TranslateNotImplemented);
  ExportArray(m);
  ExportFixed(m);
  ExportRegistered(m);
}

}  // namespace cpu
}  // namespace needle
