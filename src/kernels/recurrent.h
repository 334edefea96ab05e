// Layers of recurrent cells, run over a sequence and back through it.  Sequences have the time first: (T, B, …) for
// `steps` steps of a batch; H is `width`, and the gates of a cell are column blocks of H.
//
// What the inputs add to the gates, of_x = X W_ih (T, B, gates * H), is one product for all steps and not done here;
// nor are the gradients of X and of the weights, which are products over all steps of what the backward passes leave.
// An initial state h0 (B, H) stands before the first row of `hidden` (T, B, H).
#ifndef NEEDLE_KERNELS_RECURRENT_H_
#define NEEDLE_KERNELS_RECURRENT_H_

#include "buffer.h"
#include "isa.h"

namespace needle {

/// h' = f(of_x + b_ih + h W_hh + b_hh), f = max(0, ·) if relu, else tanh.  (Elman 1990)
void RnnForward(Buffer& of_x, const Buffer& weight, const Buffer& bias_ih, const Buffer& bias_hh, const Buffer& h0,
                Buffer& hidden, int64_t steps, int64_t batch, int64_t width, bool relu);

/// Fills the gradients of of_x and of h0, given that of `hidden`.
void RnnBackward(const Buffer& weight, const Buffer& hidden, const Buffer& hidden_grad, Buffer& of_x_grad,
                 Buffer& h0_grad, int64_t steps, int64_t batch, int64_t width, bool relu);

/// i, f, g, o = of_x + b_ih + h W_hh + b_hh; c' = σ(f) c + σ(i) tanh(g); h' = σ(o) tanh(c').  `gates` comes as of_x and
/// leaves as σ(i), σ(f), tanh(g), σ(o), which the backward pass reads.  (Hochreiter and Schmidhuber 1997)
void LstmForward(Buffer& gates, const Buffer& weight, const Buffer& bias_ih, const Buffer& bias_hh, const Buffer& h0,
                 const Buffer& c0, Buffer& hidden, Buffer& memory, int64_t steps, int64_t batch, int64_t width);

/// As RnnBackward; c_grad comes as the gradient of the last row of `memory` and leaves as that of c0.
void LstmBackward(const Buffer& gates, const Buffer& weight, const Buffer& c0, const Buffer& memory,
                  const Buffer& hidden_grad, Buffer& of_x_grad, Buffer& h0_grad, Buffer& c_grad, int64_t steps,
                  int64_t batch, int64_t width);

/// r, z, n of x and of h: of_x + b_ih and of_h = h W_hh + b_hh; r = σ(rx + rh), z = σ(zx + zh), n = tanh(nx + r nh);
/// h' = n + z (h - n).  `gates` comes as of_x and leaves as r, z, n; of_h is filled.  (Cho et al. 2014)
void GruForward(Buffer& gates, Buffer& of_h, const Buffer& weight, const Buffer& bias_ih, const Buffer& bias_hh,
                const Buffer& h0, Buffer& hidden, int64_t steps, int64_t batch, int64_t width);

/// As RnnBackward; fills the gradient of of_h, too.
void GruBackward(const Buffer& gates, const Buffer& of_h, const Buffer& weight, const Buffer& h0, const Buffer& hidden,
                 const Buffer& hidden_grad, Buffer& of_x_grad, Buffer& of_h_grad, Buffer& h0_grad, int64_t steps,
                 int64_t batch, int64_t width);

// ---- one step of a cell, for some rows of the batch; made for one vector width --------------------------------------

template <typename T>
struct Biases {
  const T *ih, *hh;
};

/// A backward step adds the gradient that comes from the output to the one that comes from the step after (`h_grad`).
template <typename T>
struct RecurrentKernels {
  void (*rnn)(const T* gates, Biases<T> bias, T* h_new, int64_t rows, int64_t width, bool relu);
  void (*rnn_backward)(const T* h_new, const T* out_grad, const T* h_grad, T* gates_grad, int64_t rows, int64_t width,
                       bool relu);
  void (*lstm)(T* gates, Biases<T> bias, const T* c, T* c_new, T* h_new, int64_t rows, int64_t width);
  void (*lstm_backward)(const T* gates, const T* c, const T* c_new, const T* out_grad, const T* h_grad, T* c_grad,
                        T* gates_grad, int64_t rows, int64_t width);
  void (*gru)(T* gates, T* of_h, Biases<T> bias, const T* h, T* h_new, int64_t rows, int64_t width);
  /// Leaves in h_grad what reaches h past the gates.
  void (*gru_backward)(const T* gates, const T* of_h, const T* h, const T* out_grad, T* h_grad, T* of_x_grad,
                       T* of_h_grad, int64_t rows, int64_t width);
};

NEEDLE_FOR_EACH_ISA(template <typename T> RecurrentKernels<T> TableOfRecurrent();)

}  // namespace needle

#endif  // NEEDLE_KERNELS_RECURRENT_H_
