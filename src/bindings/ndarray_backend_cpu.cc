// The Python module around the course's kernel file: checks, then the kernel, with the GIL released.
//
// Compiled once, into an archive of its own: the linker takes it only if the kernel file has no PYBIND11_MODULE itself.
#include <algorithm>
#include <string>
#include <utility>

#include "../aligned_array.h"
#include "../checks.h"
#include "ndarray_backend_checked.h"

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

/// Copy `to.size` elements.
static void CopyWithinDevice(const AlignedArray& from, AlignedArray& to) {
  std::copy(from.ptr, from.ptr + to.size, to.ptr);
}

namespace {

/// What Python calls Array: storage of its own, or, from wrap(), memory that a NumPy array owns and is kept alive for.
struct Array : ArrayOf<AlignedArray> {
  explicit Array(size_t size) : ArrayOf(size) {}
  Array(scalar_t* memory, size_t size, py::object owner) : ArrayOf(memory, size), owner(std::move(owner)) {}
  bool owns_memory() const { return !owner; }
  static constexpr bool kReducesInPlace = true;  // out may begin where a does: a run is read before it is written over

  py::object owner;  // not py::keep_alive, which in pybind11 3.1 crashes on an argument of the wrong type
};

// ---- storage ------------------------------------------------------------------------------------------------------

py::object Wrap(const py::array& memory) {
  const int wanted = py::array::c_style | py::detail::npy_api::NPY_ARRAY_ALIGNED_;
  if (!py::isinstance<py::array_t<scalar_t>>(memory) || (memory.flags() & wanted) != wanted || !memory.writeable()) {
    throw py::type_error("wrap: wanted a C-contiguous, aligned, writable float32 array");
  }
  auto* data = const_cast<scalar_t*>(static_cast<const scalar_t*>(memory.data()));
  return ArrayType<Array>::Make(data, static_cast<size_t>(memory.size()), memory);
}

py::array ToNumpy(const Array& a, const Dims& shape, const Dims& strides, int64_t offset) {
  const Dims safe = CheckedStrides("to_numpy", shape, strides, offset, a.length());
  if (CheckedSize("to_numpy", shape) == 0) {  // strides are given: pybind11's own may overflow beside an extent of 0
    return py::array_t<scalar_t>(shape, Dims(shape.size(), sizeof(scalar_t)));
  }
  return CopyOfView(shape, safe, a.ptr + offset, py::none());
}

/// Python's buffer protocol: the memory as floats, which may be written.
int ShowMemory(PyObject* object, Py_buffer* view, int flags) {
  static Py_ssize_t item_size = sizeof(scalar_t);
  static char format[] = "f";
  Array& a = *ArrayType<Array>::In(object);
  PyBuffer_FillInfo(view, object, a.ptr, a.length() * item_size, /*readonly=*/0, flags);
  view->itemsize = item_size;
  view->format = flags & PyBUF_FORMAT ? format : nullptr;
  if (view->shape) view->shape = reinterpret_cast<Py_ssize_t*>(&a.size);
  if (view->strides) view->strides = &item_size;
  return 0;
}

void FromNumpy(const FloatArray& from, Array& out) {
  CheckSize("from_numpy", "the NumPy array", from.size(), out.length());
  std::copy(from.data(), from.data() + from.size(), out.ptr);
}

// ---- the product of tiles ------------------------------------------------------------------------------------------

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
  CopyWithinDevice(a, left);
  CopyWithinDevice(b, right);
  MatmulTiled(left, right, &product, m, n, p);
  CopyWithinDevice(product, out);
}

// ---- the module -----------------------------------------------------------------------------------------------------

void ExportArray(py::module_& m) {
  ArrayType<Array>::Export(m, &ShowMemory);
  // two addresses of functions: the one thing here that trusts its caller, who is needle alone
  m.def("_set_memory_source", [](uintptr_t allocate, uintptr_t free) {
    memory_source = {reinterpret_cast<void* (*)(int64_t)>(allocate),
                     reinterpret_cast<void (*)(void*, int64_t) noexcept>(free)};
  });
  m.def("wrap", &Wrap, py::arg("np_array"));
  m.def("to_numpy", &ToNumpy, py::arg("a"), py::arg("shape"), py::arg("strides"), py::arg("offset"));
  m.def("from_numpy", &FromNumpy, py::arg("np_array"), py::arg("out"));
}

}  // namespace

PYBIND11_MODULE(ndarray_backend_cpu, m) {
  m.doc() = "The course's CPU kernels on flat float32 storage.";
  m.attr("__device_name__") = "cpu";
  m.attr("__tile_size__") = kTile;
  py::register_local_exception_translator(&TranslateNotImplemented);
  ExportArray(m);
  ExportFixed<Array>(m);
  m.def("matmul_tiled", &CheckedMatmulTiled, py::arg("a"), py::arg("b"), py::arg("out"), py::arg("m"), py::arg("n"),
        py::arg("p"), ReleaseGil());
  ExportRegistered<Array, EwiseUnary, EwiseBinary, EwiseScalar>(m);
}

}  // namespace cpu
}  // namespace needle
