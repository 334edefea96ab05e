// One step of recurrent cells, forward and backward: each pass reads and writes every number once.
#include "../recurrent.h"

#include "math.h"
#include "vector.h"

namespace needle {
namespace {

template <typename T>
struct Cells : Math<T> {
  using typename Simd<T>::Vector;
  using Simd<T>::kLanes;
  using Math<T>::Tanh, Math<T>::Sigmoid;

  // ---- rows in vectors, the last of which may be shorter ------------------------------------------------------------

  struct Piece {
    int64_t lanes;

    Vector operator()(const T* from) const {
      if (lanes == kLanes) return Simd<T>::Load(from);
      Vector value = {};
      for (int64_t i = 0; i < lanes; i++) value[i] = from[i];
      return value;
    }

    void Store(T* to, Vector value) const {
      if (lanes == kLanes) return Simd<T>::Store(to, value);
      for (int64_t i = 0; i < lanes; i++) to[i] = value[i];
    }
  };

  /// Call body(row, column, load) for all pieces of all rows.
  template <typename Body>
  static void ForEachPiece(int64_t rows, int64_t width, const Body& body) {
    for (int64_t row = 0; row < rows; row++) {
      for (int64_t j = 0; j < width; j += kLanes) body(row, j, Piece{width - j < kLanes ? width - j : kLanes});
    }
  }

  static Vector Relu(Vector a) { return a < 0 ? Vector{} : a; }  // NaN stays NaN

  // ---- Elman's cell -------------------------------------------------------------------------------------------------

  static void Rnn(const T* gates, Biases<T> bias, T* h_new, int64_t rows, int64_t width, bool relu) {
    ForEachPiece(rows, width, [=](int64_t row, int64_t j, Piece load) {
      const int64_t at = row * width + j;
      const Vector total = load(gates + at) + (load(bias.ih + j) + load(bias.hh + j));
      load.Store(h_new + at, relu ? Relu(total) : Tanh(total));
    });
  }

  static void RnnBackward(const T* h_new, const T* out_grad, const T* h_grad, T* gates_grad, int64_t rows,
                          int64_t width, bool relu) {
    ForEachPiece(rows, width, [=](int64_t row, int64_t j, Piece load) {
      const int64_t at = row * width + j;
      const Vector grad = load(out_grad + at) + load(h_grad + at), h = load(h_new + at);
      load.Store(gates_grad + at, grad * (relu ? (h > 0 ? Vector{} + 1 : Vector{}) : 1 - h * h));
    });
  }

  // ---- LSTM ---------------------------------------------------------------------------------------------------------

  static void Lstm(T* gates, Biases<T> bias, const T* c, T* c_new, T* h_new, int64_t rows, int64_t width) {
    ForEachPiece(rows, width, [=](int64_t row, int64_t j, Piece load) {
      T* gate = gates + row * 4 * width + j;
      const auto total = [&](int64_t block) {
        const int64_t at = block * width;
        return load(gate + at) + (load(bias.ih + j + at) + load(bias.hh + j + at));
      };
      const Vector i = Sigmoid(total(0)), f = Sigmoid(total(1)), g = Tanh(total(2)), o = Sigmoid(total(3));
      const int64_t at = row * width + j;
      const Vector memory = f * load(c + at) + i * g;
      load.Store(c_new + at, memory);
      load.Store(h_new + at, o * Tanh(memory));
      load.Store(gate, i);
      load.Store(gate + width, f);
      load.Store(gate + 2 * width, g);
      load.Store(gate + 3 * width, o);
    });
  }

  static void LstmBackward(const T* gates, const T* c, const T* c_new, const T* out_grad, const T* h_grad, T* c_grad,
                           T* gates_grad, int64_t rows, int64_t width) {
    ForEachPiece(rows, width, [=](int64_t row, int64_t j, Piece load) {
      const T* gate = gates + row * 4 * width + j;
      T* grad = gates_grad + row * 4 * width + j;
      const Vector i = load(gate), f = load(gate + width), g = load(gate + 2 * width), o = load(gate + 3 * width);
      const int64_t at = row * width + j;
      const Vector bent = Tanh(load(c_new + at)), to_h = load(out_grad + at) + load(h_grad + at);
      const Vector to_c = load(c_grad + at) + to_h * o * (1 - bent * bent);
      load.Store(c_grad + at, to_c * f);
      load.Store(grad, to_c * g * i * (1 - i));
      load.Store(grad + width, to_c * load(c + at) * f * (1 - f));
      load.Store(grad + 2 * width, to_c * i * (1 - g * g));
      load.Store(grad + 3 * width, to_h * bent * o * (1 - o));
    });
  }

  // ---- GRU ----------------------------------------------------------------------------------------------------------

  static void Gru(T* gates, T* of_h, Biases<T> bias, const T* h, T* h_new, int64_t rows, int64_t width) {
    ForEachPiece(rows, width, [=](int64_t row, int64_t j, Piece load) {
      T *gate = gates + row * 3 * width + j, *from_h = of_h + row * 3 * width + j;
      const auto of_x = [&](int64_t block) { return load(gate + block * width) + load(bias.ih + j + block * width); };
      const auto h_part = [&](int64_t block) {
        const Vector part = load(from_h + block * width) + load(bias.hh + j + block * width);
        load.Store(from_h + block * width, part);
        return part;
      };
      const Vector r = Sigmoid(of_x(0) + h_part(0)), z = Sigmoid(of_x(1) + h_part(1));
      const Vector n = Tanh(of_x(2) + r * h_part(2));
      load.Store(h_new + row * width + j, n + z * (load(h + row * width + j) - n));
      load.Store(gate, r);
      load.Store(gate + width, z);
      load.Store(gate + 2 * width, n);
    });
  }

  static void GruBackward(const T* gates, const T* of_h, const T* h, const T* out_grad, T* h_grad, T* of_x_grad,
                          T* of_h_grad, int64_t rows, int64_t width) {
    ForEachPiece(rows, width, [=](int64_t row, int64_t j, Piece load) {
      const int64_t block = row * 3 * width + j, at = row * width + j;
      const T* gate = gates + block;
      const Vector r = load(gate), z = load(gate + width), n = load(gate + 2 * width);
      const Vector grad = load(out_grad + at) + load(h_grad + at);
      const Vector to_n = grad * (1 - z) * (1 - n * n), to_z = grad * (load(h + at) - n) * z * (1 - z);
      const Vector to_r = to_n * load(of_h + block + 2 * width) * r * (1 - r);
      load.Store(h_grad + at, grad * z);
      load.Store(of_x_grad + block, to_r);
      load.Store(of_x_grad + block + width, to_z);
      load.Store(of_x_grad + block + 2 * width, to_n);
      load.Store(of_h_grad + block, to_r);
      load.Store(of_h_grad + block + width, to_z);
      load.Store(of_h_grad + block + 2 * width, to_n * r);
    });
  }
};

}  // namespace

namespace NEEDLE_ISA {

template <typename T>
RecurrentKernels<T> TableOfRecurrent() {
  using C = Cells<T>;
  return {&C::Rnn, &C::RnnBackward, &C::Lstm, &C::LstmBackward, &C::Gru, &C::GruBackward};
}
template RecurrentKernels<float> TableOfRecurrent<float>();
template RecurrentKernels<double> TableOfRecurrent<double>();

}  // namespace NEEDLE_ISA
}  // namespace needle
