// What the Python modules around the course's kernel files share: checks, then the kernel, with the GIL released.
//
// All of it are templates over Array, what a module's Python calls by that name.  The kernels that they call (Fill,
// Compact, ...) are found where Array's storage is declared, by argument-dependent lookup.
#ifndef NEEDLE_BINDINGS_NDARRAY_BACKEND_CHECKED_H_
#define NEEDLE_BINDINGS_NDARRAY_BACKEND_CHECKED_H_

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <exception>
#include <string>

#include "../checks.h"
#include "../registered.h"
#include "ndarray_backend_array.h"

namespace py = pybind11;

namespace needle {

using FloatArray = py::array_t<float, py::array::c_style | py::array::forcecast>;
using ReleaseGil = py::call_guard<py::gil_scoped_release>;

template <typename Array>
bool Overlap(const Array& a, const Array& b) {
  return a.ptr < b.ptr + b.size && b.ptr < a.ptr + a.size;
}

// ---- storage --------------------------------------------------------------------------------------------------------

/// A NumPy array of its own, copied from the view whose first element lies at `first`, in memory that `owner` keeps.
inline py::array CopyOfView(const Dims& shape, const Dims& strides, const float* first, const py::object& owner) {
  Dims bytes;
  for (int64_t stride : strides) bytes.push_back(stride * static_cast<int64_t>(sizeof(float)));
  return py::array_t<float>(shape, bytes, first, owner).attr("copy")();
}

// ---- the fixed kernels ----------------------------------------------------------------------------------------------

template <typename Array>
void CheckedFill(Array& out, float val) {
  if (out.size) Fill(&out, val);
}

template <typename Array>
void CheckedCompact(const Array& a, Array& out, const Dims& shape, const Dims& strides, int64_t offset) {
  const Dims safe = CheckedStrides("compact", shape, strides, offset, a.length());
  CheckSize("compact", "out", out.length(), CheckedSize("compact", shape));
  if (out.size) Compact(a, &out, shape, safe, offset);
}

template <typename Array>
void CheckedEwiseSetitem(const Array& a, Array& out, const Dims& shape, const Dims& strides, int64_t offset) {
  const Dims safe = CheckedStrides("ewise_setitem", shape, strides, offset, out.length());
  CheckSize("ewise_setitem", "a", a.length(), CheckedSize("ewise_setitem", shape));
  if (!a.size) return;
  if (!Overlap(a, out)) return EwiseSetitem(a, &out, shape, safe, offset);
  typename Array::Storage copy(a.size);  // x[::-1] = x: read all of it before the first write
  CopyWithinDevice(a, copy);
  EwiseSetitem(copy, &out, shape, safe, offset);
}

template <typename Array>
void CheckedScalarSetitem(int64_t size, float val, Array& out, const Dims& shape, const Dims& strides, int64_t offset) {
  const Dims safe = CheckedStrides("scalar_setitem", shape, strides, offset, out.length());
  CheckSize("scalar_setitem", "the shape", CheckedSize("scalar_setitem", shape), size);
  if (size == 0) return;
  const Dims once = WithoutRepeats(shape, safe);
  ScalarSetitem(static_cast<size_t>(CheckedSize("scalar_setitem", once)), val, &out, once, safe, offset);
}

template <typename Array>
void CheckProduct(const char* who, const Array& a, const Array& b, const Array& out, int64_t m, int64_t n, int64_t p) {
  CheckSize(who, "a", a.length(), CheckedSize(who, {m, n}));
  CheckSize(who, "b", b.length(), CheckedSize(who, {n, p}));
  CheckSize(who, "out", out.length(), CheckedSize(who, {m, p}));
  if (Overlap(a, out) || Overlap(b, out)) Refuse(who, "out shares memory with an operand");
}

template <typename Array>
void CheckedMatmul(const Array& a, const Array& b, Array& out, int64_t m, int64_t n, int64_t p) {
  CheckProduct("matmul", a, b, out, m, n, p);
  if (out.size) Matmul(a, b, &out, m, n, p);
}

template <typename Array>
void CheckReduce(const char* who, const Array& a, const Array& out, int64_t reduce_size) {
  CheckSize(who, "a", a.length(), CheckedSize(who, {out.length(), reduce_size}));
  if (!Array::kReducesInPlace && Overlap(a, out)) Refuse(who, "out shares memory with a");
}

template <typename Array>
void CheckedReduceMax(const Array& a, Array& out, int64_t reduce_size) {
  CheckReduce("reduce_max", a, out, reduce_size);
  if (out.size && reduce_size == 0) Refuse("reduce_max", "runs of 0 elements have no maximum");
  if (out.size) ReduceMax(a, &out, static_cast<size_t>(reduce_size));
}

template <typename Array>
void CheckedReduceSum(const Array& a, Array& out, int64_t reduce_size) {
  CheckReduce("reduce_sum", a, out, reduce_size);
  if (out.size) ReduceSum(a, &out, static_cast<size_t>(reduce_size));
}

// ---- what every module has ------------------------------------------------------------------------------------------

template <typename Array>
void ExportFixed(py::module_& m) {
  const py::arg a("a"), b("b"), out("out"), val("val"), shape("shape"), strides("strides"), offset("offset");
  const py::arg reduce_size("reduce_size");
  m.def("fill", &CheckedFill<Array>, out, val, ReleaseGil());
  m.def("compact", &CheckedCompact<Array>, a, out, shape, strides, offset, ReleaseGil());
  m.def("ewise_setitem", &CheckedEwiseSetitem<Array>, a, out, shape, strides, offset, ReleaseGil());
  m.def("scalar_setitem", &CheckedScalarSetitem<Array>, py::arg("size"), val, out, shape, strides, offset,
        ReleaseGil());
  m.def("matmul", &CheckedMatmul<Array>, a, b, out, py::arg("m"), py::arg("n"), py::arg("p"), ReleaseGil());
  m.def("reduce_max", &CheckedReduceMax<Array>, a, out, reduce_size, ReleaseGil());
  m.def("reduce_sum", &CheckedReduceSum<Array>, a, out, reduce_size, ReleaseGil());
}

/// The element-wise kernels that the kernel file registered.
template <typename Array, typename EwiseUnary, typename EwiseBinary, typename EwiseScalar>
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
    auto checked = [row](const Array& a, float val, Array& out) {
      CheckSize(row.name, "out", out.length(), a.length());
      if (out.size) row.kernel(a, val, &out);
    };
    m.def(row.name, checked, a, val, out, ReleaseGil());
  }
}

inline void TranslateNotImplemented(std::exception_ptr thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const NotImplemented& error) {
    py::set_error(PyExc_NotImplementedError, error.what());
  }
}

}  // namespace needle

#endif  // NEEDLE_BINDINGS_NDARRAY_BACKEND_CHECKED_H_
