// What the Python modules around the library's typed kernels share: numbers, NumPy's dtypes, exceptions, and the
// kernels that every device has.  The kernels check their arguments themselves; they run with the GIL released.
#ifndef NEEDLE_BINDINGS_TYPED_KERNELS_H_
#define NEEDLE_BINDINGS_TYPED_KERNELS_H_

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../checks.h"
#include "../kernels/buffer.h"
#include "../kernels/elementwise.h"
#include "../kernels/gather.h"
#include "../kernels/layer_norm.h"
#include "../kernels/matmul.h"
#include "../kernels/memory.h"
#include "../kernels/reductions.h"
#include "../kernels/rows.h"
#include "../kernels/softmax.h"
#include "../kernels/strided.h"
#include "ndarray_backend_array.h"

namespace py = pybind11;

namespace needle {
inline namespace NEEDLE_KERNELS_MODULE {

inline ArrayReader read_array = nullptr;  // of the course's module on the same device, once it has been introduced

}  // namespace NEEDLE_KERNELS_MODULE
}  // namespace needle

namespace pybind11 {
namespace detail {

/// A Buffer, or an Array of the course: for the length of the call, a view of its memory.
template <>
struct type_caster<needle::Buffer> : type_caster_base<needle::Buffer> {
  bool load(handle source, bool convert) {
    void* memory;
    int64_t size;
    if (!needle::read_array || !needle::read_array(source.ptr(), &memory, &size)) {
      return type_caster_base::load(source, convert);
    }
    value = &view_.emplace(memory, size, needle::DType::kFloat32);
    return true;
  }

 private:
  std::optional<needle::Buffer> view_;
};

/// A list of such; the views live as long as the list.
template <typename Pointer>
struct buffers_caster {
  PYBIND11_TYPE_CASTER(std::vector<Pointer>, const_name("list[Buffer]"));

  bool load(handle source, bool convert) {
    if (!PyList_Check(source.ptr())) return false;
    for (handle item : reinterpret_borrow<list>(source)) {
      elements_.push_back(std::make_unique<type_caster<needle::Buffer>>());
      if (!elements_.back()->load(item, convert)) return false;
      value.push_back(cast_op<needle::Buffer*>(*elements_.back()));
    }
    return true;
  }

 private:
  std::vector<std::unique_ptr<type_caster<needle::Buffer>>> elements_;
};

template <>
struct type_caster<std::vector<needle::Buffer*>> : buffers_caster<needle::Buffer*> {};
template <>
struct type_caster<std::vector<const needle::Buffer*>> : buffers_caster<const needle::Buffer*> {};

/// Python's int, float and bool, NumPy's scalars, and whatever else is a number by __index__ or __float__.
template <>
struct type_caster<needle::Scalar> {
  PYBIND11_TYPE_CASTER(needle::Scalar, const_name("float | int"));

  bool load(handle source, bool /*convert*/) {
    if (PyIndex_Check(source.ptr()) && LoadInteger(source)) return true;
    const double real = PyFloat_AsDouble(source.ptr());
    if (real == -1.0 && PyErr_Occurred()) return Fail();
    value = needle::Scalar(real);
    return true;
  }

 private:
  bool LoadInteger(handle source) {
    object index = reinterpret_steal<object>(PyNumber_Index(source.ptr()));
    if (!index) return Fail();
    int overflow = 0;
    const long long integer = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
    if (overflow || (integer == -1 && PyErr_Occurred())) return Fail();
    value = needle::Scalar(static_cast<int64_t>(integer));
    return true;
  }

  static bool Fail() {
    PyErr_Clear();
    return false;
  }
};

}  // namespace detail
}  // namespace pybind11

namespace needle {
namespace {

// ---- storage and NumPy ----------------------------------------------------------------------------------------------

py::dtype NumpyDType(DType dtype) {
  return py::dtype(std::string(Name(dtype)));
}

/// The dtype of a NumPy array in native byte order; a TypeError for any but the six.
DType DTypeOf(const char* who, const py::array& a) {
  DType found = DType::kFloat32;
  bool known = false;
#define NEEDLE_MATCH(number, T, name) \
  if (a.dtype().equal(NumpyDType(DType::number))) found = DType::number, known = true;
  NEEDLE_DTYPES(NEEDLE_MATCH)
#undef NEEDLE_MATCH
  if (!known) throw TypeError(std::string(who) + ": a NumPy array of an unknown dtype");
  return found;
}

/// A share in a Python object's life.  (py::keep_alive in pybind11 3.1 crashes on an argument of the wrong type.)
std::shared_ptr<void> Share(py::object object) {
  return {object.release().ptr(), [](void* shared) { py::handle(static_cast<PyObject*>(shared)).dec_ref(); }};
}

std::unique_ptr<Buffer> ViewOf(uintptr_t address, int64_t size, const std::string& dtype, py::object owner) {
  return std::make_unique<Buffer>(reinterpret_cast<void*>(address), size, DTypeFromName(dtype),
                                  Share(std::move(owner)));
}

void AcceptArrays(const py::capsule& reader) {
  if (!reader.name() || std::strcmp(reader.name(), kArrayReader)) throw TypeError("_accept_arrays: not a reader");
  read_array = reinterpret_cast<ArrayReader>(reader.get_pointer());
}

// ---- the kernels that every device has ------------------------------------------------------------------------------

const py::call_guard<py::gil_scoped_release> release_gil;

/// A class of flat storage, without what only memory that the CPU can read has.
py::class_<Buffer> ExportBuffer(py::module_& m, py::class_<Buffer> buffer) {
  buffer
      .def(py::init([](int64_t size, const std::string& dtype) {
             return std::make_unique<Buffer>(size, DTypeFromName(dtype));
           }),
           py::arg("size"), py::arg("dtype"))
      .def_property_readonly("size", &Buffer::size)
      .def_property_readonly("dtype", [](const Buffer& a) { return Name(a.dtype()); })
      .def_property_readonly("owns_memory", &Buffer::owns_memory)
      .def("ptr", [](const Buffer& a) { return reinterpret_cast<uintptr_t>(a.data()); });
  m.def("_view", &ViewOf, py::arg("address"), py::arg("size"), py::arg("dtype"), py::arg("owner"));
  m.def("_accept_arrays", &AcceptArrays, py::arg("reader"));
  m.def("allocated_bytes", &AllocatedBytes);
  return buffer;
}

py::dict StatsAsDict() {
  const MemoryStats stats = MemoryAllocator().Stats();
  return py::dict(py::arg("live") = stats.live, py::arg("cached") = stats.cached, py::arg("peak") = stats.peak,
                  py::arg("system_allocations") = stats.system_allocations);
}

/// What can be asked of the allocator, and told to it.
void ExportMemory(py::module_& m) {
  m.def("memory_stats", &StatsAsDict);
  m.def("empty_cache", [] { MemoryAllocator().EmptyCache(); }, release_gil);
  m.def("reset_peak", [] { MemoryAllocator().ResetPeak(); });
  // for the course's arrays, which live in a module of their own: one cache serves both
  m.def("_memory_source", [] {
    return std::make_pair(reinterpret_cast<uintptr_t>(&AllocateMemory), reinterpret_cast<uintptr_t>(&FreeMemory));
  });
}

void ExportElementwise(py::module_& m) {
  const py::arg a("a"), b("b"), out("out"), val("val");
  for (auto [name, kernel] : UnaryRows()) m.def(name, kernel, a, out, release_gil);
  for (auto [name, kernel] : BinaryRows()) m.def(name, kernel, a, b, out, release_gil);
  for (auto [name, kernel] : ScalarRows()) m.def(name, kernel, a, val, out, release_gil);
  m.def("fill", &Fill, out, val, release_gil);
  m.def("cast", &Cast, a, out, release_gil);
  m.def("where", &Where, py::arg("cond"), a, b, out, release_gil);
}

void ExportStrided(py::module_& m) {
  const py::arg a("a"), out("out"), shape("shape"), strides("strides"), offset("offset");
  m.def("compact", &Compact, a, out, shape, strides, offset, release_gil);
  m.def("ewise_setitem", &EwiseSetitem, a, out, shape, strides, offset, release_gil);
  m.def("scalar_setitem", &ScalarSetitem, py::arg("size"), py::arg("val"), out, shape, strides, offset, release_gil);
}

void ExportReductions(py::module_& m) {
  const py::arg a("a"), out("out"), reduce_size("reduce_size");
  m.def("reduce_sum", &ReduceSum, a, out, reduce_size, release_gil);
  m.def("reduce_prod", &ReduceProd, a, out, reduce_size, release_gil);
  m.def("reduce_max", &ReduceMax, a, out, reduce_size, release_gil);
  m.def("reduce_min", &ReduceMin, a, out, reduce_size, release_gil);
  m.def("reduce_argmax", &ReduceArgmax, a, out, reduce_size, release_gil);
  m.def("reduce_argmin", &ReduceArgmin, a, out, reduce_size, release_gil);
}

void ExportRows(py::module_& m) {
  const py::arg a("a"), y("y"), out("out"), out_grad("out_grad"), cols("cols"), logits("logits"), labels("labels"),
      lse("lse"), weight("weight"), mean("mean"), scale("scale");
  m.def("logsumexp", &Logsumexp, a, out, cols, release_gil);
  m.def("logsumexp_backward", &LogsumexpBackward, a, lse, out_grad, out, cols, release_gil);
  m.def("logsoftmax", &Logsoftmax, a, out, cols, release_gil);
  m.def("logsoftmax_backward", &LogsoftmaxBackward, y, out_grad, out, cols, release_gil);
  m.def("softmax", &Softmax, a, out, cols, release_gil);
  m.def("softmax_backward", &SoftmaxBackward, y, out_grad, out, cols, release_gil);
  m.def("cross_entropy", &CrossEntropy, logits, labels, out, lse, cols, release_gil);
  m.def("cross_entropy_backward", &CrossEntropyBackward, logits, labels, lse, out_grad, out, cols, release_gil);
  m.def("layer_norm", &LayerNorm, a, weight, py::arg("bias"), out, mean, scale, py::arg("eps"), release_gil);
  m.def("layer_norm_backward", &LayerNormBackward, a, weight, mean, scale, out_grad, py::arg("to_a"),
        py::arg("to_weight"), py::arg("to_bias"), release_gil);
}

void ExportProducts(py::module_& m) {
  const py::arg a("a"), b("b"), out("out"), batch("batch"), rows("m"), inner("n"), columns("p");
  m.def("matmul", &Matmul, a, b, out, rows, inner, columns, release_gil);
  m.def("matmul_batched", &MatmulBatched, a, b, out, batch, rows, inner, columns, py::arg("a_stride"),
        py::arg("b_stride"), release_gil);
}

void ExportGather(py::module_& m) {
  const py::arg a("a"), indices("indices"), out("out"), outer("outer"), axis_size("axis_size"), inner("inner");
  m.def("take", &Take, a, indices, out, outer, axis_size, inner, release_gil);
  m.def("scatter_add", &ScatterAdd, a, indices, out, outer, axis_size, inner, release_gil);
}

void TranslateTypeError(std::exception_ptr thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const TypeError& error) {
    py::set_error(PyExc_TypeError, error.what());
  }
}

void ExportKernels(py::module_& m) {
  py::register_local_exception_translator(&TranslateTypeError);
  ExportElementwise(m);
  ExportStrided(m);
  ExportReductions(m);
  ExportRows(m);
  ExportProducts(m);
  ExportGather(m);
}

}  // namespace
}  // namespace needle

#endif  // NEEDLE_BINDINGS_TYPED_KERNELS_H_
