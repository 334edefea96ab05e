// A kernel file in the layout of the public course: storage, kernels and PYBIND11_MODULE in one file, which includes
// nothing of ours.  tests/unit/test_native_build.py builds it in place of src/ndarray_backend_cpu.cc.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <cstdlib>
#include <new>
#include <vector>

namespace needle {
namespace cpu {

typedef float scalar_t;
const size_t ELEM_SIZE = sizeof(scalar_t);

struct AlignedArray {  // the name of ours in the namespace of ours, and not the same thing
  AlignedArray(const size_t size) {
    if (posix_memalign(reinterpret_cast<void**>(&ptr), 256, size * ELEM_SIZE) != 0) throw std::bad_alloc();
    this->size = size;
  }
  ~AlignedArray() { free(ptr); }
  size_t ptr_as_int() { return reinterpret_cast<size_t>(ptr); }
  scalar_t* ptr;
  size_t size;
};

void Fill(AlignedArray* out, scalar_t val) {
  for (size_t i = 0; i < out->size; i++) out->ptr[i] = val;
}

void EwiseAdd(const AlignedArray& a, const AlignedArray& b, AlignedArray* out) {
  for (size_t i = 0; i < a.size; i++) out->ptr[i] = a.ptr[i] + b.ptr[i];
}

}  // namespace cpu
}  // namespace needle

PYBIND11_MODULE(ndarray_backend_cpu, m) {
  namespace py = pybind11;
  using namespace needle::cpu;

  m.attr("__device_name__") = "cpu";
  m.attr("__tile_size__") = 8;
  m.attr("layout") = "public";

  py::class_<AlignedArray>(m, "Array")
      .def(py::init<size_t>(), py::return_value_policy::take_ownership)
      .def("ptr", &AlignedArray::ptr_as_int)
      .def_readonly("size", &AlignedArray::size);

  m.def("to_numpy", [](const AlignedArray& a, std::vector<size_t> shape, std::vector<size_t> strides, size_t offset) {
    for (size_t& stride : strides) stride *= ELEM_SIZE;
    return py::array_t<scalar_t>(shape, strides, a.ptr + offset);
  });
  m.def("from_numpy", [](py::array_t<scalar_t> a, AlignedArray* out) {
    for (size_t i = 0; i < out->size; i++) out->ptr[i] = a.data()[i];
  });
  m.def("fill", Fill);
  m.def("ewise_add", EwiseAdd);
}
