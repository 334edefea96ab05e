// One epoch of softmax regression in C++: the same arithmetic as in simple_ml.py, with the loops that NumPy hides.
#include "simple_ml_ext.h"

#include <algorithm>
#include <cmath>
#include <vector>

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
  /// END YOUR SOLUTION hw0/softmax_regression_epoch_cpp
}
