#include "recurrent.h"

#include <algorithm>
#include <initializer_list>

#include "../checks.h"
#include "gemm.h"
#include "parallel.h"
#include "rounding.h"
#include "scratch.h"

namespace needle {
namespace {

constexpr int64_t kThreadWork = 1 << 17;  // multiplications that are worth a thread
constexpr int64_t kDepth = 384;           // so many rows of the weights at a time, for the sake of the caches

// ---- h W for every step: the weights are packed once ----------------------------------------------------------------

template <typename T>
class PackedWeights {
 public:
  /// For weights (inner, columns).
  PackedWeights(const Matrix<T>& weights, int64_t inner, int64_t columns)
      : kernels_(NEEDLE_DISPATCH(TableOfGemm<T>)()), inner_(inner), columns_(columns) {
    width_ = RoundUp(columns, kernels_.tile_columns);
    panels_ = scratch_.Get<T>(static_cast<size_t>(width_ * inner));
    for (int64_t k = 0; k < inner; k += kDepth) {
      const Matrix<T> below{weights.data + k * weights.row_stride, weights.row_stride, weights.column_stride};
      kernels_.pack_b(below, std::min(kDepth, inner - k), columns, panels_ + k * width_);
    }
  }

  /// out (+)= a @ weights for `rows` rows, on the calling thread, which brings work space.
  void Multiply(const T* a, T* out, int64_t rows, bool accumulate, Scratch& scratch) const {
    T* strips = scratch.Get<T>(static_cast<size_t>((rows + kernels_.tile_rows) * std::min(inner_, kDepth)));
    for (int64_t k = 0; k < inner_; k += kDepth, accumulate = true) {
      const int64_t depth = std::min(kDepth, inner_ - k);
      kernels_.pack_a({a + k, inner_, 1}, rows, depth, strips);
      kernels_.multiply(strips, panels_ + k * width_, {rows, depth, columns_}, out, columns_,
                        accumulate ? Accumulated<T>() : Epilogue<T>());
    }
  }

 private:
  GemmKernels<T> kernels_;
  int64_t inner_, columns_, width_ = 0;
  Scratch scratch_;
  T* panels_ = nullptr;
};

// ---- time -----------------------------------------------------------------------------------------------------------

struct Sizes {
  int64_t steps, batch, width, gates;

  int64_t states() const { return steps * batch * width; }
  int64_t columns() const { return gates * width; }

  /// Call body(first, rows) for parts of the batch on several threads: no row needs another.
  template <typename Body>
  void ForEachPart(const Body& body) const {
    const int64_t work = std::max<int64_t>(steps * width * columns(), 1);
    ParallelFor(batch, 1 + kThreadWork / work, [&](int64_t begin, int64_t end) { body(begin, end - begin); });
  }
};

Sizes CheckedSizes(const char* who, int64_t steps, int64_t batch, int64_t width, int64_t gates) {
  CheckedSize(who, {steps, batch, gates, width});
  CheckedSize(who, {batch, width});  // which a product with no steps would not show
  CheckedSize(who, {gates, width, width});
  return {steps, batch, width, gates};
}

/// The state before a step: h0 before the first, else the rows of the step before.
template <typename T>
const T* Before(const T* initial, const T* states, const Sizes& s, int64_t step, int64_t first) {
  return step ? states + ((step - 1) * s.batch + first) * s.width : initial + first * s.width;
}

/// For every step in order: of_h (+)= h W_hh, then cell(row of all steps' rows, h, rows).
template <typename T, typename Cell>
void RunForward(const Sizes& s, const T* weight, const T* h0, const T* hidden, T* of_h, bool accumulate,
                const Cell& cell) {
  const PackedWeights<T> weights({weight, s.columns(), 1}, s.width, s.columns());
  s.ForEachPart([&](int64_t first, int64_t rows) {
    Scratch scratch;
    for (int64_t step = 0; step < s.steps; step++) {
      const int64_t row = step * s.batch + first;
      const T* h = Before(h0, hidden, s, step, first);
      weights.Multiply(h, of_h + row * s.columns(), rows, accumulate, scratch);
      cell(step, first, row, rows);
    }
  });
}

/// For every step, the last one first: cell(row of all steps' rows, …), then h_grad (+)= of_h_grad W_hhᵀ.
template <typename T, typename Cell>
void RunBackward(const Sizes& s, const T* weight, const T* of_h_grad, T* h_grad, bool accumulate, const Cell& cell) {
  const PackedWeights<T> weights({weight, 1, s.columns()}, s.columns(), s.width);  // transposed
  s.ForEachPart([&](int64_t first, int64_t rows) {
    Scratch scratch;
    std::fill(h_grad + first * s.width, h_grad + (first + rows) * s.width, T(0));
    for (int64_t step = s.steps - 1; step >= 0; step--) {
      const int64_t row = step * s.batch + first;
      cell(step, first, row, rows);
      weights.Multiply(of_h_grad + row * s.columns(), h_grad + first * s.width, rows, accumulate, scratch);
    }
  });
}

// ---- what they ask of their arguments -------------------------------------------------------------------------------

struct Argument {
  const char* name;
  const Buffer& buffer;
  int64_t size;
};

/// All of the first one's dtype; what is written, the last `outputs` of them, shares no memory with anything.
void CheckAll(const char* who, std::initializer_list<Argument> arguments, size_t outputs) {
  const Argument* begin = arguments.begin();
  for (const Argument& a : arguments) CheckBuffer(who, a.name, a.buffer, a.size, begin->buffer.dtype());
  for (const Argument* out = arguments.end() - outputs; out != arguments.end(); out++) {
    for (const Argument* other = begin; other != out; other++) CheckApart(who, other->buffer, out->buffer);
  }
}

}  // namespace

// ---- Elman's cell ---------------------------------------------------------------------------------------------------

void RnnForward(Buffer& of_x, const Buffer& weight, const Buffer& bias_ih, const Buffer& bias_hh, const Buffer& h0,
                Buffer& hidden, int64_t steps, int64_t batch, int64_t width, bool relu) {
  const char* who = "rnn_forward";
  const Sizes s = CheckedSizes(who, steps, batch, width, 1);
  CheckAll(who,
           {{"weight", weight, width * width},
            {"bias_ih", bias_ih, width},
            {"bias_hh", bias_hh, width},
            {"h0", h0, batch * width},
            {"of_x", of_x, s.states()},
            {"hidden", hidden, s.states()}},
           2);
  VisitOnly<FloatType>(who, of_x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const RecurrentKernels<T> kernels = NEEDLE_DISPATCH(TableOfRecurrent<T>)();
    const Biases<T> bias{bias_ih.as<T>(), bias_hh.as<T>()};
    T *gates = of_x.as<T>(), *h = hidden.as<T>();
    RunForward(s, weight.as<T>(), h0.as<T>(), h, gates, true, [&](int64_t, int64_t, int64_t row, int64_t rows) {
      kernels.rnn(gates + row * width, bias, h + row * width, rows, width, relu);
    });
  });
}

void RnnBackward(const Buffer& weight, const Buffer& hidden, const Buffer& hidden_grad, Buffer& of_x_grad,
                 Buffer& h0_grad, int64_t steps, int64_t batch, int64_t width, bool relu) {
  const char* who = "rnn_backward";
  const Sizes s = CheckedSizes(who, steps, batch, width, 1);
  CheckAll(who,
           {{"weight", weight, width * width},
            {"hidden", hidden, s.states()},
            {"hidden_grad", hidden_grad, s.states()},
            {"of_x_grad", of_x_grad, s.states()},
            {"h0_grad", h0_grad, batch * width}},
           2);
  VisitOnly<FloatType>(who, weight.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const RecurrentKernels<T> kernels = NEEDLE_DISPATCH(TableOfRecurrent<T>)();
    T *gates_grad = of_x_grad.as<T>(), *h_grad = h0_grad.as<T>();
    RunBackward(s, weight.as<T>(), gates_grad, h_grad, false, [&](int64_t, int64_t first, int64_t row, int64_t rows) {
      const int64_t at = row * width;
      kernels.rnn_backward(hidden.as<T>() + at, hidden_grad.as<T>() + at, h_grad + first * width, gates_grad + at, rows,
                           width, relu);
    });
  });
}

// ---- LSTM -----------------------------------------------------------------------------------------------------------

void LstmForward(Buffer& gates, const Buffer& weight, const Buffer& bias_ih, const Buffer& bias_hh, const Buffer& h0,
                 const Buffer& c0, Buffer& hidden, Buffer& memory, int64_t steps, int64_t batch, int64_t width) {
  const char* who = "lstm_forward";
  const Sizes s = CheckedSizes(who, steps, batch, width, 4);
  CheckAll(who,
           {{"weight", weight, 4 * width * width},
            {"bias_ih", bias_ih, 4 * width},
            {"bias_hh", bias_hh, 4 * width},
            {"h0", h0, batch * width},
            {"c0", c0, batch * width},
            {"gates", gates, 4 * s.states()},
            {"hidden", hidden, s.states()},
            {"memory", memory, s.states()}},
           3);
  VisitOnly<FloatType>(who, gates.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const RecurrentKernels<T> kernels = NEEDLE_DISPATCH(TableOfRecurrent<T>)();
    const Biases<T> bias{bias_ih.as<T>(), bias_hh.as<T>()};
    T *gate = gates.as<T>(), *h = hidden.as<T>(), *c = memory.as<T>();
    RunForward(s, weight.as<T>(), h0.as<T>(), h, gate, true,
               [&](int64_t step, int64_t first, int64_t row, int64_t rows) {
                 const int64_t at = row * width;
                 kernels.lstm(gate + 4 * at, bias, Before(c0.as<T>(), c, s, step, first), c + at, h + at, rows, width);
               });
  });
}

void LstmBackward(const Buffer& gates, const Buffer& weight, const Buffer& c0, const Buffer& memory,
                  const Buffer& hidden_grad, Buffer& of_x_grad, Buffer& h0_grad, Buffer& c_grad, int64_t steps,
                  int64_t batch, int64_t width) {
  const char* who = "lstm_backward";
  const Sizes s = CheckedSizes(who, steps, batch, width, 4);
  CheckAll(who,
           {{"gates", gates, 4 * s.states()},
            {"weight", weight, 4 * width * width},
            {"c0", c0, batch * width},
            {"memory", memory, s.states()},
            {"hidden_grad", hidden_grad, s.states()},
            {"of_x_grad", of_x_grad, 4 * s.states()},
            {"h0_grad", h0_grad, batch * width},
            {"c_grad", c_grad, batch * width}},
           3);
  VisitOnly<FloatType>(who, gates.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const RecurrentKernels<T> kernels = NEEDLE_DISPATCH(TableOfRecurrent<T>)();
    const T *gate = gates.as<T>(), *c = memory.as<T>(), *out_grad = hidden_grad.as<T>();
    T *gates_grad = of_x_grad.as<T>(), *to_h = h0_grad.as<T>(), *to_c = c_grad.as<T>();
    RunBackward(s, weight.as<T>(), gates_grad, to_h, false,
                [&](int64_t step, int64_t first, int64_t row, int64_t rows) {
                  const int64_t at = row * width;
                  kernels.lstm_backward(gate + 4 * at, Before(c0.as<T>(), c, s, step, first), c + at, out_grad + at,
                                        to_h + first * width, to_c + first * width, gates_grad + 4 * at, rows, width);
                });
  });
}

// ---- GRU ------------------------------------------------------------------------------------------------------------

void GruForward(Buffer& gates, Buffer& of_h, const Buffer& weight, const Buffer& bias_ih, const Buffer& bias_hh,
                const Buffer& h0, Buffer& hidden, int64_t steps, int64_t batch, int64_t width) {
  const char* who = "gru_forward";
  const Sizes s = CheckedSizes(who, steps, batch, width, 3);
  CheckAll(who,
           {{"weight", weight, 3 * width * width},
            {"bias_ih", bias_ih, 3 * width},
            {"bias_hh", bias_hh, 3 * width},
            {"h0", h0, batch * width},
            {"gates", gates, 3 * s.states()},
            {"of_h", of_h, 3 * s.states()},
            {"hidden", hidden, s.states()}},
           3);
  VisitOnly<FloatType>(who, gates.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const RecurrentKernels<T> kernels = NEEDLE_DISPATCH(TableOfRecurrent<T>)();
    const Biases<T> bias{bias_ih.as<T>(), bias_hh.as<T>()};
    T *gate = gates.as<T>(), *from_h = of_h.as<T>(), *h = hidden.as<T>();
    RunForward(
        s, weight.as<T>(), h0.as<T>(), h, from_h, false, [&](int64_t step, int64_t first, int64_t row, int64_t rows) {
          const int64_t at = row * width;
          kernels.gru(gate + 3 * at, from_h + 3 * at, bias, Before(h0.as<T>(), h, s, step, first), h + at, rows, width);
        });
  });
}

void GruBackward(const Buffer& gates, const Buffer& of_h, const Buffer& weight, const Buffer& h0, const Buffer& hidden,
                 const Buffer& hidden_grad, Buffer& of_x_grad, Buffer& of_h_grad, Buffer& h0_grad, int64_t steps,
                 int64_t batch, int64_t width) {
  const char* who = "gru_backward";
  const Sizes s = CheckedSizes(who, steps, batch, width, 3);
  CheckAll(who,
           {{"gates", gates, 3 * s.states()},
            {"of_h", of_h, 3 * s.states()},
            {"weight", weight, 3 * width * width},
            {"h0", h0, batch * width},
            {"hidden", hidden, s.states()},
            {"hidden_grad", hidden_grad, s.states()},
            {"of_x_grad", of_x_grad, 3 * s.states()},
            {"of_h_grad", of_h_grad, 3 * s.states()},
            {"h0_grad", h0_grad, batch * width}},
           3);
  VisitOnly<FloatType>(who, gates.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const RecurrentKernels<T> kernels = NEEDLE_DISPATCH(TableOfRecurrent<T>)();
    const T *gate = gates.as<T>(), *from_h = of_h.as<T>(), *out_grad = hidden_grad.as<T>();
    T *to_x = of_x_grad.as<T>(), *to_h = of_h_grad.as<T>(), *carried = h0_grad.as<T>();
    RunBackward(s, weight.as<T>(), to_h, carried, true, [&](int64_t step, int64_t first, int64_t row, int64_t rows) {
      const int64_t at = row * width;
      kernels.gru_backward(gate + 3 * at, from_h + 3 * at, Before(h0.as<T>(), hidden.as<T>(), s, step, first),
                           out_grad + at, carried + first * width, to_x + 3 * at, to_h + 3 * at, rows, width);
    });
  });
}

}  // namespace needle
