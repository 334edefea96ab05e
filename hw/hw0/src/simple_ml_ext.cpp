// One epoch of softmax regression in C++: the same arithmetic as in simple_ml.py, with the loops that NumPy hides.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

namespace py = pybind11;

/// One epoch of stochastic gradient descent on softmax regression; changes theta in place.
///
///   X      inputs (m, n), row after row
///   y      labels (m), each below k
///   theta  weights (n, k), row after row
///   lr     step size
///   batch  rows per step, taken in order; the last step may have fewer
void softmax_regression_epoch_cpp(const float *X, const unsigned char *y, float *theta, size_t m, size_t n, size_t k,
                                  float lr, size_t batch) {
  /// BEGIN YOUR SOLUTION hw0/softmax_regression_epoch_cpp
  std::vector<float> error(batch * k);
  for (size_t first = 0; first < m; first += batch) {
    const size_t rows = std::min(batch, m - first);
    const float *X_b = X + first * n;

    // error = softmax(X_b theta) - onehot(y_b)
    for (size_t i = 0; i < rows; i++) {
      float *row = &error[i * k];
      std::fill(row, row + k, 0.0f);
      for (size_t f = 0; f < n; f++)
        for (size_t j = 0; j < k; j++) row[j] += X_b[i * n + f] * theta[f * k + j];

      const float largest = *std::max_element(row, row + k);  // exp of a large logit would overflow
      float sum = 0;
      for (size_t j = 0; j < k; j++) sum += row[j] = std::exp(row[j] - largest);
      for (size_t j = 0; j < k; j++) row[j] /= sum;
      row[y[first + i]] -= 1;
    }

    // theta -= lr / rows * X_bᵀ error
    for (size_t i = 0; i < rows; i++)
      for (size_t f = 0; f < n; f++)
        for (size_t j = 0; j < k; j++) theta[f * k + j] -= lr / rows * X_b[i * n + f] * error[i * k + j];
  }
  /// STARTER
  //   PyErr_SetString(PyExc_NotImplementedError, "hw0/softmax_regression_epoch_cpp is not implemented yet");
  //   throw py::error_already_set();
  /// END YOUR SOLUTION hw0/softmax_regression_epoch_cpp
}

// ---- given: from Python arrays to pointers, so that nothing above can reach outside an array --------------------------

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
  module.def("softmax_regression_epoch_cpp", &Epoch, py::arg("X"), py::arg("y"), py::arg("theta"), py::arg("lr"),
             py::arg("batch"), "One epoch of softmax regression; changes theta in place.");
}
