// What simple_ml_ext.cpp and its bindings share. No pybind11 here: it takes seconds to compile, your file a moment.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>

/// Becomes Python's NotImplementedError.
struct NotImplemented : std::logic_error {
  explicit NotImplemented(const std::string &part) : std::logic_error(part + " is not implemented yet") {}
};

void softmax_regression_epoch_cpp(const float *X, const unsigned char *y, float *theta, std::size_t m, std::size_t n,
                                  std::size_t k, float lr, std::size_t batch);
