// Array, as the course's modules show it to Python, and how the library's modules read it.
//
// A Python type of its own, without pybind11: an array is made for the result of every operator, and an instance of a
// py::class_ costs four times as much as one of these.
#ifndef NEEDLE_BINDINGS_NDARRAY_BACKEND_ARRAY_H_
#define NEEDLE_BINDINGS_NDARRAY_BACKEND_ARRAY_H_

#include <pybind11/pybind11.h>
#include <structmember.h>

#include <cstdint>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

#include "../checks.h"

namespace py = pybind11;

namespace needle {

/// Whether a Python object is an Array, and if so, where its floats are and how many: types of two modules cannot meet.
using ArrayReader = bool (*)(PyObject* object, void** memory, int64_t* size);

constexpr const char* kArrayReader = "needle.ArrayReader";  // the name of the capsule that hands one over

/// What a module derives its Array from.  The module does so in an unnamed namespace: then no other module, not even
/// one of the same source, takes its arrays for its own.
struct AnyArray {};

template <typename Kind>
struct ArrayOf : Kind, AnyArray {
  using Storage = Kind;

  explicit ArrayOf(size_t size) : Kind(size) {}
  int64_t length() const { return static_cast<int64_t>(this->size); }
  bool owns_memory() const { return true; }

 protected:
  ArrayOf(float* memory, size_t size) : Kind(memory, size) {}  // of a kind that takes memory of somebody else's
};

/// The Python type around an Array.
template <typename Array>
class ArrayType {
 public:
  /// Make the type, as `Array` in a module.  buffer: its buffer protocol, if Python can see its memory.
  static void Export(py::module_& m, getbufferproc buffer = nullptr) {
    static const std::string name = m.attr("__name__").cast<std::string>() + ".Array";
    PyMemberDef members[] = {{"__weaklistoffset__", T_PYSSIZET, sizeof(PyObject), READONLY, nullptr}, {}};
    static PyGetSetDef properties[] = {{"size", &Size, nullptr, "How many elements there are.", nullptr},
                                       {"owns_memory", &Owns, nullptr, "Whether the memory is its own.", nullptr},
                                       {}};
    static PyMethodDef methods[] = {{"ptr", &Pointer, METH_NOARGS, "The address of the first element."}, {}};
    PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(&New)},
                           {Py_tp_dealloc, reinterpret_cast<void*>(&Destroy)},
                           {Py_tp_members, members},
                           {Py_tp_getset, properties},
                           {Py_tp_methods, methods},
                           {buffer ? Py_bf_getbuffer : 0, reinterpret_cast<void*>(buffer)},
                           {0, nullptr}};
    const unsigned flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE;
    PyType_Spec spec = {name.c_str(), sizeof(Object), 0, flags, slots};
    type_ = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
    if (!type_) throw py::error_already_set();
    m.attr("Array") = py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(type_));
    m.attr("_array_reader") = py::capsule(reinterpret_cast<void*>(&Read), kArrayReader);
  }

  /// A new object, its Array constructed from these arguments.  A null pointer if Python has no memory for it.
  template <typename... Args>
  static PyObject* Make(PyTypeObject* type, Args&&... args) {
    PyObject* object = type->tp_alloc(type, 0);  // zeroed
    if (!object) return nullptr;
    try {
      new (&reinterpret_cast<Object*>(object)->array) Array(std::forward<Args>(args)...);
    } catch (...) {
      type->tp_free(object);
      Py_DECREF(type);
      throw;
    }
    return object;
  }

  template <typename... Args>
  static py::object Make(Args&&... args) {
    PyObject* object = Make(type_, std::forward<Args>(args)...);
    if (!object) throw py::error_already_set();
    return py::reinterpret_steal<py::object>(object);
  }

  /// The Array in a Python object; a null pointer if that is none.
  static Array* In(PyObject* object) {
    return PyObject_TypeCheck(object, type_) ? &reinterpret_cast<Object*>(object)->array : nullptr;
  }

 private:
  struct Object {
    PyObject_HEAD PyObject* weak_references;  // where __weaklistoffset__ says
    Array array;
  };

  /// Array(size=0); all in __new__, so that there is no object without an Array, and none whose Array is replaced.
  static PyObject* New(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
    static const char* names[] = {"size", nullptr};
    Py_ssize_t size = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|n:Array", const_cast<char**>(names), &size)) return nullptr;
    try {
      if (size < 0) Refuse("Array", "size " + std::to_string(size) + " is negative");
      return Make(type, static_cast<size_t>(size));
    } catch (...) {
      py::detail::try_translate_exceptions();
      return nullptr;
    }
  }

  static void Destroy(PyObject* object) {
    PyTypeObject* type = Py_TYPE(object);
    auto* self = reinterpret_cast<Object*>(object);
    if (self->weak_references) PyObject_ClearWeakRefs(object);
    self->array.~Array();
    type->tp_free(object);
    Py_DECREF(type);
  }

  static PyObject* Size(PyObject* object, void* /*closure*/) { return PyLong_FromLongLong(In(object)->length()); }
  static PyObject* Owns(PyObject* object, void* /*closure*/) { return PyBool_FromLong(In(object)->owns_memory()); }
  static PyObject* Pointer(PyObject* object, PyObject* /*none*/) { return PyLong_FromVoidPtr(In(object)->ptr); }

  static bool Read(PyObject* object, void** memory, int64_t* size) {
    const Array* array = In(object);
    if (!array) return false;
    *memory = array->ptr;
    *size = array->length();
    return true;
  }

  inline static PyTypeObject* type_ = nullptr;
};

}  // namespace needle

namespace pybind11 {
namespace detail {

/// An Array as an argument of a function.
template <typename Array>
struct type_caster<Array, enable_if_t<std::is_base_of<needle::AnyArray, Array>::value>> {
  static constexpr auto name = const_name("Array");
  template <typename T>
  using cast_op_type = Array&;

  bool load(handle source, bool /*convert*/) {
    array_ = needle::ArrayType<Array>::In(source.ptr());
    return array_ != nullptr;
  }
  operator Array&() { return *array_; }

 private:
  Array* array_ = nullptr;
};

}  // namespace detail
}  // namespace pybind11

#endif  // NEEDLE_BINDINGS_NDARRAY_BACKEND_ARRAY_H_
