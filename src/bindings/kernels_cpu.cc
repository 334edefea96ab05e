// The Python module around the library's CPU kernels: what is special about memory that NumPy can read.
#include <cstring>
#include <new>

#include "../kernels/activations.h"
#include "../kernels/batch_norm.h"
#include "../kernels/convolution.h"
#include "../kernels/isa.h"
#include "../kernels/optimizer.h"
#include "../kernels/parallel.h"
#include "sequence_kernels.h"
#include "typed_kernels.h"

namespace needle {
namespace {

// ---- storage and NumPy ----------------------------------------------------------------------------------------------

std::unique_ptr<Buffer> Wrap(const py::array& memory) {
  const int wanted = py::array::c_style | py::detail::npy_api::NPY_ARRAY_ALIGNED_;
  if ((memory.flags() & wanted) != wanted || !memory.writeable()) {
    throw TypeError("wrap: wanted a C-contiguous, aligned, writable array");
  }
  void* data = const_cast<void*>(memory.data());
  return std::make_unique<Buffer>(data, memory.size(), DTypeOf("wrap", memory), Share(memory));
}

py::buffer_info BufferInfo(Buffer& a) {
  return Visit(a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    using Exposed = std::conditional_t<kIsBool<T>, bool, T>;
    return py::buffer_info(a.data(), sizeof(T), py::format_descriptor<Exposed>::format(), a.size());
  });
}

void FromNumpy(const py::array& from, Buffer& out) {
  CheckDType("from_numpy", "out", out, DTypeOf("from_numpy", from));
  CheckSize("from_numpy", "the NumPy array", from.size(), out.size());
  const py::array contiguous = py::array::ensure(from, py::array::c_style);
  if (!contiguous) throw py::error_already_set();
  std::memmove(out.data(), contiguous.data(), static_cast<size_t>(out.bytes()));
}

py::array ToNumpy(const Buffer& a, const Dims& shape, const Dims& strides, int64_t offset) {
  CheckedStrides("to_numpy", shape, strides, offset, a.size());
  const int64_t size = CheckedSize("to_numpy", shape);
  int64_t bytes;
  if (size == 0) {  // strides are given: pybind11's own may overflow beside an extent of 0
    return py::array(NumpyDType(a.dtype()), shape, Dims(shape.size(), ItemSize(a.dtype())));
  }
  if (__builtin_mul_overflow(size, ItemSize(a.dtype()), &bytes))
    throw std::bad_alloc();  // or here, of a broadcast view
  py::array copy(NumpyDType(a.dtype()), shape);
  Buffer out(copy.mutable_data(), copy.size(), a.dtype());
  py::gil_scoped_release release_gil;
  Compact(a, out, shape, strides, offset);
  return copy;
}

// ---- kernels that only the CPU has ----------------------------------------------------------------------------------

void ExportStridedProducts(py::module_& m) {
  const py::arg a("a"), b("b"), bias("bias"), out("out"), shape("shape");
  const py::arg a_strides("a_strides"), a_offset("a_offset"), b_strides("b_strides"), b_offset("b_offset");
  m.def("matmul_strided", &MatmulStrided, a, b, out, shape, a_strides, a_offset, b_strides, b_offset, release_gil);
  m.def("linear", &Linear, a, b, bias, out, shape, a_strides, a_offset, b_strides, b_offset, release_gil);
}

void ExportConvolution(py::module_& m) {
  const py::arg images("images"), kernel("kernel"), out("out"), out_grad("out_grad");
  const py::arg images_shape("images_shape"), images_strides("images_strides"), images_offset("images_offset");
  const py::arg grad_strides("grad_strides"), grad_offset("grad_offset"), kernel_shape("kernel_shape");
  const py::arg stride("stride"), padding("padding"), dilation("dilation"), groups("groups");
  m.def("convolution", &Convolution, images, kernel, py::arg("bias").none(true), out, images_shape, images_strides,
        images_offset, kernel_shape, stride, padding, dilation, groups, py::arg("relu"), release_gil);
  m.def("convolution_to_images", &ConvolutionToImages, out_grad, kernel, out, grad_strides, grad_offset, images_shape,
        kernel_shape, stride, padding, dilation, groups, release_gil);
  m.def("convolution_to_kernel", &ConvolutionToKernel, images, out_grad, out, py::arg("bias_out").none(true),
        images_shape, images_strides, images_offset, grad_strides, grad_offset, kernel_shape, stride, padding, dilation,
        groups, release_gil);
}

void ExportBatchNorm(py::module_& m) {
  const py::arg a("a"), weight("weight"), mean("mean"), scale("scale"), outer("outer"), inner("inner");
  m.def("batch_norm", &BatchNorm, a, weight, py::arg("bias"), py::arg("running_mean"), py::arg("running_var"),
        py::arg("out"), mean, scale, py::arg("mixed_mean"), py::arg("mixed_var"), outer, inner, py::arg("eps"),
        py::arg("momentum"), release_gil);
  m.def("batch_norm_backward", &BatchNormBackward, a, weight, mean, scale, py::arg("out_grad"), py::arg("to_a"),
        py::arg("to_weight"), py::arg("to_bias"), outer, inner, release_gil);
}

// ---- the module -----------------------------------------------------------------------------------------------------

void ExportStorage(py::module_& m) {
  ExportBuffer(m, {m, "Buffer", py::buffer_protocol(), py::module_local()}).def_buffer(&BufferInfo);
  m.def("wrap", &Wrap, py::arg("np_array"));
  m.def("from_numpy", &FromNumpy, py::arg("np_array"), py::arg("out"));
  m.def("to_numpy", &ToNumpy, py::arg("a"), py::arg("shape"), py::arg("strides"), py::arg("offset"));
  ExportMemory(m);
  m.def("num_threads", &NumThreads);
  m.def("set_num_threads", &SetNumThreads, py::arg("threads"));
  m.def("isa", [] { return Name(IsaInUse()); });
  m.def("set_isa", &SetIsa, py::arg("name"));
  m.def("available_isas", [] {
    std::vector<std::string> names;
    for (Isa isa : AvailableIsas()) names.push_back(Name(isa));
    return names;
  });
}

void ExportViews(py::module_& m) {
  const py::arg a("a"), b("b"), out("out"), shape("shape"), strides("strides"), offset("offset"), kept("kept");
  const py::arg a_strides("a_strides"), a_offset("a_offset"), b_strides("b_strides"), b_offset("b_offset");
  for (auto [name, kernel] : ViewRows()) {
    m.def(name, kernel, a, b, out, shape, a_strides, a_offset, b_strides, b_offset, release_gil);
  }
  m.def("view_reduce_sum", &ViewReduceSum, a, out, shape, strides, offset, kept, release_gil);
  m.def("view_reduce_max", &ViewReduceMax, a, out, shape, strides, offset, kept, release_gil);
  m.def("view_reduce_min", &ViewReduceMin, a, out, shape, strides, offset, kept, release_gil);
}

void ExportActivations(py::module_& m) {
  const py::arg a("a"), out("out"), out_grad("out_grad"), keep("keep");
  for (auto [name, kernel] : ActivationRows()) m.def(name, kernel, a, out, release_gil);
  for (auto [name, kernel] : ActivationBackwardRows()) m.def(name, kernel, a, out_grad, out, release_gil);
  m.def("dropout", &Dropout, a, py::arg("uniform"), keep, out, release_gil);
}

void ExportOptimizers(py::module_& m) {
  const py::arg params("params"), grads("grads"), u("u"), v("v"), new_params("new_params"), new_u("new_u"),
      new_v("new_v"), lr("lr"), momentum("momentum"), weight_decay("weight_decay"), eps("eps");
  m.def("sgd_steps", &SgdSteps, params, grads, u, new_params, new_u, lr, momentum, weight_decay, py::arg("correction"),
        py::arg("nesterov"), release_gil);
  m.def("adam_steps", &AdamSteps, params, grads, py::arg("m"), v, new_params, py::arg("new_m"), new_v, lr,
        py::arg("beta1"), py::arg("beta2"), eps, weight_decay, py::arg("shrink"), py::arg("m_correction"),
        py::arg("v_correction"), release_gil);
  m.def("rmsprop_steps", &RmspropSteps, params, grads, u, v, new_params, new_u, new_v, lr, py::arg("alpha"), eps,
        momentum, weight_decay, release_gil);
  m.def("sum_of_squares", &SumOfSquares, py::arg("arrays"), release_gil);
}

}  // namespace

PYBIND11_MODULE(kernels_cpu, m) {
  m.doc() = "The library's CPU kernels on flat storage of six dtypes.";
  ExportStorage(m);
  ExportKernels(m);
  ExportRecurrent(m);
  ExportStridedProducts(m);
  ExportViews(m);
  ExportActivations(m);
  ExportAttention(m);
  ExportScatterSum(m);
  ExportConvolution(m);
  ExportBatchNorm(m);
  ExportOptimizers(m);
  // where the float32 kernel was measured to be faster than the course's plain one
  m.attr("__fast__") = py::make_tuple("matmul", "reduce_sum", "reduce_max", "compact", "ewise_setitem", "fill",
                                      "ewise_add", "ewise_mul", "ewise_div", "ewise_maximum", "ewise_eq", "ewise_ge",
                                      "scalar_add", "scalar_mul", "scalar_div", "scalar_power", "scalar_maximum",
                                      "scalar_eq", "scalar_ge", "ewise_log", "ewise_exp", "ewise_tanh");
}

}  // namespace needle
