// From Python arrays to pointers, so that nothing in simple_ml_ext.cpp can reach outside an array.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <string>

#include "simple_ml_ext.h"

namespace py = pybind11;

static void Require(bool holds, const std::string &message) {
  if (!holds) throw std::invalid_argument("softmax_regression_epoch_cpp: " + message);
}

/// A pointer to a C-ordered array's own numbers. Never to a converted copy: what is written there would be lost.
template <typename T>
static T *Pointer(const py::array &array, const std::string &name, const std::string &type) {
  const bool c_ordered = array.flags() & py::array::c_style;
  Require(py::isinstance<py::array_t<T, py::array::c_style>>(array),
          name + " is " + py::str(array.dtype()).cast<std::string>() + (c_ordered ? "" : ", not C-ordered") +
              "; wanted C-ordered " + type);
  return static_cast<T *>(const_cast<void *>(array.data()));
}

static void Epoch(py::array X, py::array y, py::array theta, float lr, py::ssize_t batch) {
  const float *x = Pointer<float>(X, "X", "float32");
  const unsigned char *labels = Pointer<unsigned char>(y, "y", "uint8");
  float *weights = Pointer<float>(theta, "theta", "float32");
  Require(X.ndim() == 2 && y.ndim() == 1 && theta.ndim() == 2, "wanted X (m, n), y (m,) and theta (n, k)");
  Require(y.shape(0) == X.shape(0), "X has " + std::to_string(X.shape(0)) + " rows, y " + std::to_string(y.shape(0)));
  Require(theta.shape(0) == X.shape(1),
          "X has " + std::to_string(X.shape(1)) + " columns, theta " + std::to_string(theta.shape(0)) + " rows");
  Require(theta.writeable(), "theta is read-only");
  Require(batch > 0, "batch is " + std::to_string(batch) + ", wanted at least 1");
  const unsigned char *end = labels + y.shape(0);
  Require(std::all_of(labels, end, [&](unsigned char label) { return label < theta.shape(1); }),
          "a label is not below the " + std::to_string(theta.shape(1)) + " columns of theta");
  const size_t rows_per_step = std::min<size_t>(batch, std::max<size_t>(1, X.shape(0)));
  softmax_regression_epoch_cpp(x, labels, weights, X.shape(0), X.shape(1), theta.shape(1), lr, rows_per_step);
}

PYBIND11_MODULE(simple_ml_ext, module) {
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      std::rethrow_exception(thrown);
    } catch (const NotImplemented &error) {
      PyErr_SetString(PyExc_NotImplementedError, error.what());
    }
  });
  module.def("softmax_regression_epoch_cpp", &Epoch, py::arg("X"), py::arg("y"), py::arg("theta"), py::arg("lr"),
             py::arg("batch"), "One epoch of softmax regression; changes theta in place.");
}
