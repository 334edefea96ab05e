// Recurrent layers, forward and back, against one step of the cell after the other, with the bound of what rounding may
// do.  A backward pass is held against what the forward pass left, which then counts as exact.
#include "bounded.h"
#include "check.h"
#include "kernels/recurrent.h"

using namespace needle;

struct Layer {
  int64_t steps, batch, width;

  int64_t states() const { return steps * batch * width; }
};

// none, one, vectors and a rest, enough for three threads, sums of more products than one block of the weights has
static const std::vector<Layer> kLayers = {{0, 2, 3},  {2, 0, 3},   {1, 1, 1},   {2, 3, 5},
                                           {3, 2, 17}, {4, 19, 40}, {2, 2, 101}, {1, 2, 390}};

template <typename T>
using Values = std::vector<T>;
template <typename T>
using Bounds = std::vector<Bounded<T>>;

template <typename T>
static Bounds<T> AllExact(const Values<T>& values) {
  Bounds<T> bounds;
  for (T value : values) bounds.push_back(Exact<T>(value));
  return bounds;
}

template <typename T>
static bool Covered(const Bounds<T>& wanted, const Values<T>& got) {
  bool covered = wanted.size() == got.size();
  for (size_t i = 0; covered && i < got.size(); i++) covered = wanted[i].Covers(got[i]);
  return covered;
}

/// What all layers have; weights so small that what rounding does to a state does not grow from step to step.
template <typename T>
struct Operands {
  Layer layer;
  int64_t gates;
  Values<T> of_x, weight, bias_ih, bias_hh, h0, c0, hidden_grad, c_grad;

  Operands(const Layer& l, int64_t g)
      : layer(l),
        gates(g),
        of_x(Reals<T>(g * l.states(), 1)),
        weight(Reals<T>(g * l.width * l.width, 2)),
        bias_ih(Reals<T>(g * l.width, 3)),
        bias_hh(Reals<T>(g * l.width, 4)),
        h0(Reals<T>(l.batch * l.width, 5)),
        c0(Reals<T>(l.batch * l.width, 6)),
        hidden_grad(Reals<T>(l.states(), 7)),
        c_grad(Reals<T>(l.batch * l.width, 8)) {
    for (T& w : weight) w /= static_cast<T>(l.width);
  }

  int64_t columns() const { return gates * layer.width; }

  /// (h W)[row, column] for the rows of a step.
  Bounded<T> OfH(const Bounds<T>& h, int64_t row, int64_t column) const {
    Sum<T> sum;
    for (int64_t k = 0; k < layer.width; k++) {
      sum.Add(h[row * layer.width + k] * Exact<T>(weight[k * columns() + column]));
    }
    return sum.Total();
  }

  /// Σ of the gradient of the gates' inputs (rows, columns) times Wᵀ.
  Bounded<T> ToH(const Bounds<T>& gates_grad, int64_t row, int64_t j) const {
    Sum<T> sum;
    for (int64_t k = 0; k < columns(); k++) {
      sum.Add(gates_grad[row * columns() + k] * Exact<T>(weight[j * columns() + k]));
    }
    return sum.Total();
  }

  /// of_x + b_ih + b_hh + h W, in any order.
  Bounded<T> Total(const Bounds<T>& h, int64_t step, int64_t row, int64_t column) const {
    Sum<T> sum;
    sum.Add(Exact<T>(of_x[(step * layer.batch + row) * columns() + column]));
    sum.Add(Exact<T>(bias_ih[column]));
    sum.Add(Exact<T>(bias_hh[column]));
    sum.Add(OfH(h, row, column));
    return sum.Total();
  }

  /// Part of an array over all steps: one step's.
  Bounds<T> Step(const Values<T>& all, int64_t step) const {
    const int64_t length = layer.batch * layer.width;
    return AllExact<T>({all.begin() + step * length, all.begin() + (step + 1) * length});
  }
  Bounds<T> Before(const Values<T>& first, const Values<T>& all, int64_t step) const {
    return step ? Step(all, step - 1) : AllExact(first);
  }

  /// Call body(row, unit, where that stands in a state) for one step.
  template <typename Body>
  void ForEachUnit(const Body& body) const {
    for (int64_t i = 0; i < layer.batch * layer.width; i++) body(i / layer.width, i % layer.width, i);
  }
};

template <typename T>
static Bounded<T> One() {
  return Exact<T>(1);
}

template <typename T>
static void Append(Bounds<T>& all, const Bounds<T>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

// ---- Elman's cell ---------------------------------------------------------------------------------------------------

template <typename T>
static void ExpectRnn(const Layer& layer, bool relu) {
  Operands<T> x(layer, 1);
  const int64_t steps = layer.steps, batch = layer.batch, width = layer.width;
  Bounds<T> h = AllExact(x.h0), wanted;
  for (int64_t step = 0; step < steps; step++) {
    Bounds<T> next(h.size());
    x.ForEachUnit([&](int64_t row, int64_t j, int64_t i) {
      const Bounded<T> total = x.Total(h, step, row, j);
      next[i] = relu ? Bounded<T>{std::max(0.0, total.value), total.error} : Tanh(total);
    });
    h = next;
    Append(wanted, h);
  }
  Buffer weight = View(x.weight), bias_ih = View(x.bias_ih), bias_hh = View(x.bias_hh), h0 = View(x.h0);
  ForEachSetting([&] {
    Values<T> gates = x.of_x, states(x.of_x.size(), T(99)), gates_grad(states), h_grad(x.h0.size(), T(99));
    Buffer of_x = View(gates), hidden = View(states), hidden_grad = View(x.hidden_grad), of_x_grad = View(gates_grad),
           h0_grad = View(h_grad);
    RnnForward(of_x, weight, bias_ih, bias_hh, h0, hidden, steps, batch, width, relu);
    EXPECT(Covered(wanted, states));

    RnnBackward(weight, hidden, hidden_grad, of_x_grad, h0_grad, steps, batch, width, relu);
    Bounds<T> carried(h_grad.size(), Exact<T>(0)), to_x(gates_grad.size());
    for (int64_t step = steps - 1; step >= 0; step--) {
      const Bounds<T> out_grad = x.Step(x.hidden_grad, step), after = x.Step(states, step);
      Bounds<T> grads(carried.size());
      x.ForEachUnit([&](int64_t, int64_t, int64_t i) {
        const Bounded<T> slope = relu ? Exact<T>(after[i].value > 0) : One<T>() - after[i] * after[i];
        to_x[step * batch * width + i] = grads[i] = (out_grad[i] + carried[i]) * slope;
      });
      x.ForEachUnit([&](int64_t row, int64_t j, int64_t i) { carried[i] = x.ToH(grads, row, j); });
    }
    EXPECT(Covered(to_x, gates_grad));
    EXPECT(Covered(carried, h_grad));
  });
}

TEST(rnn_equals_its_steps) {
  for (const Layer& layer : kLayers) {
    for (bool relu : {false, true}) {
      ExpectRnn<float>(layer, relu);
      ExpectRnn<double>(layer, relu);
    }
  }
}

// ---- LSTM -----------------------------------------------------------------------------------------------------------

template <typename T>
struct LstmStates {
  Bounds<T> gates, hidden, memory;
};

template <typename T>
static LstmStates<T> PlainLstm(const Operands<T>& x) {
  LstmStates<T> all;
  Bounds<T> h = AllExact(x.h0), c = AllExact(x.c0);
  for (int64_t step = 0; step < x.layer.steps; step++) {
    Bounds<T> next(h.size()), gates(4 * h.size());
    x.ForEachUnit([&](int64_t row, int64_t j, int64_t i) {
      const int64_t width = x.layer.width;
      const auto total = [&](int64_t block) { return x.Total(h, step, row, j + block * width); };
      const Bounded<T> in = Sigmoid(total(0)), forget = Sigmoid(total(1)), g = Tanh(total(2)), o = Sigmoid(total(3));
      c[i] = forget * c[i] + in * g;
      next[i] = o * Tanh(c[i]);
      for (int64_t block = 0; block < 4; block++) {
        gates[row * 4 * width + block * width + j] = block == 0 ? in : block == 1 ? forget : block == 2 ? g : o;
      }
    });
    h = next;
    Append(all.gates, gates), Append(all.hidden, h), Append(all.memory, c);
  }
  return all;
}

/// The gradients of of_x, h0 and c0, given what the forward pass left.
template <typename T>
static LstmStates<T> PlainLstmBackward(const Operands<T>& x, const Values<T>& gates, const Values<T>& memory) {
  const int64_t width = x.layer.width, batch = x.layer.batch;
  Bounds<T> carried(x.h0.size(), Exact<T>(0)), to_c = AllExact(x.c_grad), to_x(gates.size());
  for (int64_t step = x.layer.steps - 1; step >= 0; step--) {
    const Bounds<T> out_grad = x.Step(x.hidden_grad, step), before = x.Before(x.c0, memory, step),
                    after = x.Step(memory, step);
    Bounds<T> grads(4 * carried.size());
    x.ForEachUnit([&](int64_t row, int64_t j, int64_t i) {
      const int64_t first = row * 4 * width + j;
      const auto gate = [&](int64_t block) {
        return Exact<T>(gates[step * batch * 4 * width + first + block * width]);
      };
      const Bounded<T> in = gate(0), forget = gate(1), g = gate(2), o = gate(3), one = One<T>();
      const Bounded<T> bent = Tanh(after[i]), to_h = out_grad[i] + carried[i];
      const Bounded<T> total = to_c[i] + to_h * o * (one - bent * bent);
      grads[first] = total * g * in * (one - in);
      grads[first + width] = total * before[i] * forget * (one - forget);
      grads[first + 2 * width] = total * in * (one - g * g);
      grads[first + 3 * width] = to_h * bent * o * (one - o);
      to_c[i] = total * forget;
    });
    std::copy(grads.begin(), grads.end(), to_x.begin() + step * batch * 4 * width);
    x.ForEachUnit([&](int64_t row, int64_t j, int64_t i) { carried[i] = x.ToH(grads, row, j); });
  }
  return {to_x, carried, to_c};
}

template <typename T>
static void ExpectLstm(const Layer& layer) {
  Operands<T> x(layer, 4);
  const int64_t steps = layer.steps, batch = layer.batch, width = layer.width;
  const LstmStates<T> wanted = PlainLstm(x);
  Buffer weight = View(x.weight), bias_ih = View(x.bias_ih), bias_hh = View(x.bias_hh), h0 = View(x.h0),
         c0 = View(x.c0), hidden_grad = View(x.hidden_grad);
  ForEachSetting([&] {
    Values<T> gate = x.of_x, h(layer.states(), T(99)), c(h), to_x(x.of_x.size(), T(99)), to_h(x.h0.size(), T(99)),
              to_c = x.c_grad;
    Buffer gates = View(gate), hidden = View(h), memory = View(c), of_x_grad = View(to_x), h0_grad = View(to_h),
           c_grad = View(to_c);
    LstmForward(gates, weight, bias_ih, bias_hh, h0, c0, hidden, memory, steps, batch, width);
    EXPECT(Covered(wanted.gates, gate));
    EXPECT(Covered(wanted.hidden, h));
    EXPECT(Covered(wanted.memory, c));

    LstmBackward(gates, weight, c0, memory, hidden_grad, of_x_grad, h0_grad, c_grad, steps, batch, width);
    const LstmStates<T> grads = PlainLstmBackward(x, gate, c);
    EXPECT(Covered(grads.gates, to_x));
    EXPECT(Covered(grads.hidden, to_h));
    EXPECT(Covered(grads.memory, to_c));
  });
}

TEST(lstm_equals_its_steps) {
  for (const Layer& layer : kLayers) {
    if (layer.width > 200) continue;
    ExpectLstm<float>(layer);
    ExpectLstm<double>(layer);
  }
}

// ---- GRU ------------------------------------------------------------------------------------------------------------

template <typename T>
struct GruStates {
  Bounds<T> gates, of_h, hidden;
};

template <typename T>
static GruStates<T> PlainGru(const Operands<T>& x) {
  GruStates<T> all;
  const int64_t width = x.layer.width;
  Bounds<T> h = AllExact(x.h0);
  for (int64_t step = 0; step < x.layer.steps; step++) {
    Bounds<T> next(h.size()), gates(3 * h.size()), parts(3 * h.size());
    x.ForEachUnit([&](int64_t row, int64_t j, int64_t i) {
      const int64_t first = row * 3 * width + j;
      const auto of_x = [&](int64_t block) {
        const T given = x.of_x[step * x.layer.batch * 3 * width + first + block * width];
        return Exact<T>(given) + Exact<T>(x.bias_ih[j + block * width]);
      };
      const auto of_h = [&](int64_t block) {
        return parts[first + block * width] = x.OfH(h, row, j + block * width) + Exact<T>(x.bias_hh[j + block * width]);
      };
      const Bounded<T> r = Sigmoid(of_x(0) + of_h(0)), z = Sigmoid(of_x(1) + of_h(1)), n = Tanh(of_x(2) + r * of_h(2));
      gates[first] = r, gates[first + width] = z, gates[first + 2 * width] = n;
      next[i] = n + z * (h[i] - n);
    });
    h = next;
    Append(all.gates, gates), Append(all.of_h, parts), Append(all.hidden, h);
  }
  return all;
}

/// The gradients of of_x, of of_h and of h0, given what the forward pass left.
template <typename T>
static GruStates<T> PlainGruBackward(const Operands<T>& x, const Values<T>& gates, const Values<T>& of_h,
                                     const Values<T>& hidden) {
  const int64_t width = x.layer.width, batch = x.layer.batch;
  Bounds<T> carried(x.h0.size(), Exact<T>(0)), to_x(gates.size()), to_h(gates.size());
  for (int64_t step = x.layer.steps - 1; step >= 0; step--) {
    const Bounds<T> out_grad = x.Step(x.hidden_grad, step), before = x.Before(x.h0, hidden, step);
    const int64_t begin = step * batch * 3 * width;
    Bounds<T> grads(3 * carried.size());
    x.ForEachUnit([&](int64_t row, int64_t j, int64_t i) {
      const int64_t first = row * 3 * width + j;
      const auto gate = [&](int64_t block) { return Exact<T>(gates[begin + first + block * width]); };
      const Bounded<T> r = gate(0), z = gate(1), n = gate(2), one = One<T>(), grad = out_grad[i] + carried[i];
      const Bounded<T> to_n = grad * (one - z) * (one - n * n), to_z = grad * (before[i] - n) * z * (one - z);
      const Bounded<T> to_r = to_n * Exact<T>(of_h[begin + first + 2 * width]) * r * (one - r);
      to_x[begin + first] = grads[first] = to_r;
      to_x[begin + first + width] = grads[first + width] = to_z;
      to_x[begin + first + 2 * width] = to_n;
      grads[first + 2 * width] = to_n * r;
      carried[i] = grad * z;  // what reaches h past the gates
    });
    std::copy(grads.begin(), grads.end(), to_h.begin() + begin);
    x.ForEachUnit([&](int64_t row, int64_t j, int64_t i) {
      Sum<T> sum;  // the kernel begins with what is carried: one more term
      sum.Add(carried[i]);
      sum.Add(x.ToH(grads, row, j));
      carried[i] = sum.Total();
    });
  }
  return {to_x, to_h, carried};
}

template <typename T>
static void ExpectGru(const Layer& layer) {
  Operands<T> x(layer, 3);
  const int64_t steps = layer.steps, batch = layer.batch, width = layer.width;
  const GruStates<T> wanted = PlainGru(x);
  Buffer weight = View(x.weight), bias_ih = View(x.bias_ih), bias_hh = View(x.bias_hh), h0 = View(x.h0),
         hidden_grad = View(x.hidden_grad);
  ForEachSetting([&] {
    Values<T> gate = x.of_x, parts(gate.size(), T(99)), h(layer.states(), T(99)), to_x(parts), to_h(parts),
              to_h0(x.h0.size(), T(99));
    Buffer gates = View(gate), of_h = View(parts), hidden = View(h), of_x_grad = View(to_x), of_h_grad = View(to_h),
           h0_grad = View(to_h0);
    GruForward(gates, of_h, weight, bias_ih, bias_hh, h0, hidden, steps, batch, width);
    EXPECT(Covered(wanted.gates, gate));
    EXPECT(Covered(wanted.of_h, parts));
    EXPECT(Covered(wanted.hidden, h));

    GruBackward(gates, of_h, weight, h0, hidden, hidden_grad, of_x_grad, of_h_grad, h0_grad, steps, batch, width);
    const GruStates<T> grads = PlainGruBackward(x, gate, parts, h);
    EXPECT(Covered(grads.gates, to_x));
    EXPECT(Covered(grads.of_h, to_h));
    EXPECT(Covered(grads.hidden, to_h0));
  });
}

TEST(gru_equals_its_steps) {
  for (const Layer& layer : kLayers) {
    if (layer.width > 200) continue;
    ExpectGru<float>(layer);
    ExpectGru<double>(layer);
  }
}

// ---- all of them ----------------------------------------------------------------------------------------------------

TEST(lstm_has_the_same_bits_on_any_number_of_threads) {
  Operands<float> x({4, 19, 40}, 4);
  Buffer weight = View(x.weight), bias_ih = View(x.bias_ih), bias_hh = View(x.bias_hh), h0 = View(x.h0),
         c0 = View(x.c0);
  EXPECT(SameOnAnyThreads([&] {
    Values<float> gate = x.of_x, h(x.layer.states()), c(h);
    Buffer gates = View(gate), hidden = View(h), memory = View(c);
    LstmForward(gates, weight, bias_ih, bias_hh, h0, c0, hidden, memory, 4, 19, 40);
    return h;
  }));
}

TEST(lstm_of_a_nan_is_nan_in_its_row_of_the_batch_alone) {
  Operands<float> x({3, 3, 5}, 4);
  x.h0[1 * 5 + 2] = std::nanf("");
  const LstmStates<float> wanted = PlainLstm(x);
  Buffer weight = View(x.weight), bias_ih = View(x.bias_ih), bias_hh = View(x.bias_hh), h0 = View(x.h0),
         c0 = View(x.c0);
  ForEachSetting([&] {
    Values<float> gate = x.of_x, h(x.layer.states()), c(h);
    Buffer gates = View(gate), hidden = View(h), memory = View(c);
    LstmForward(gates, weight, bias_ih, bias_hh, h0, c0, hidden, memory, 3, 3, 5);
    EXPECT(Covered(wanted.hidden, h));
  });
}
