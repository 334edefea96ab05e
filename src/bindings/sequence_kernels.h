// The kernels of layers that read sequences, which the CPU alone has.
#ifndef NEEDLE_BINDINGS_SEQUENCE_KERNELS_H_
#define NEEDLE_BINDINGS_SEQUENCE_KERNELS_H_

#include "../kernels/attention.h"
#include "../kernels/recurrent.h"
#include "typed_kernels.h"

namespace needle {
namespace {

void ExportRecurrent(py::module_& m) {
  const py::arg of_x("of_x"), of_h("of_h"), gates("gates"), weight("weight"), bias_ih("bias_ih"), bias_hh("bias_hh"),
      h0("h0"), c0("c0"), hidden("hidden"), memory("memory"), steps("steps"), batch("batch"), width("width"),
      relu("relu"), hidden_grad("hidden_grad"), of_x_grad("of_x_grad"), of_h_grad("of_h_grad"), h0_grad("h0_grad"),
      c_grad("c_grad");
  m.def("rnn_forward", &RnnForward, of_x, weight, bias_ih, bias_hh, h0, hidden, steps, batch, width, relu, release_gil);
  m.def("rnn_backward", &RnnBackward, weight, hidden, hidden_grad, of_x_grad, h0_grad, steps, batch, width, relu,
        release_gil);
  m.def("lstm_forward", &LstmForward, gates, weight, bias_ih, bias_hh, h0, c0, hidden, memory, steps, batch, width,
        release_gil);
  m.def("lstm_backward", &LstmBackward, gates, weight, c0, memory, hidden_grad, of_x_grad, h0_grad, c_grad, steps,
        batch, width, release_gil);
  m.def("gru_forward", &GruForward, gates, of_h, weight, bias_ih, bias_hh, h0, hidden, steps, batch, width,
        release_gil);
  m.def("gru_backward", &GruBackward, gates, of_h, weight, h0, hidden, hidden_grad, of_x_grad, of_h_grad, h0_grad,
        steps, batch, width, release_gil);
}

void ExportAttention(py::module_& m) {
  const py::arg q("q"), k("k"), v("v"), out("out"), lse("lse"), out_grad("out_grad"), batch("batch"), heads("heads"),
      queries("queries"), keys("keys"), depth("depth"), causal("causal");
  m.def("attention_forward", &AttentionForward, q, k, v, out, lse, batch, heads, queries, keys, depth, causal,
        release_gil);
  m.def("attention_backward", &AttentionBackward, q, k, v, out, lse, out_grad, py::arg("q_grad"), py::arg("k_grad"),
        py::arg("v_grad"), batch, heads, queries, keys, depth, causal, release_gil);
}

void ExportScatterSum(py::module_& m) {
  m.def("scatter_sum", &ScatterSum, py::arg("a"), py::arg("indices"), py::arg("out"), py::arg("outer"),
        py::arg("axis_size"), py::arg("inner"), release_gil);
}

}  // namespace
}  // namespace needle

#endif  // NEEDLE_BINDINGS_SEQUENCE_KERNELS_H_
