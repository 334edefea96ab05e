// The Python module around the library's CUDA kernels: what is special about memory that only the GPU can read, and the
// fused kernels.  One source for kernels_cuda, kernels_cuda_emu and kernels_cuda_emu_check; NEEDLE_KERNELS_MODULE says
// which.
#include "../kernels/cuda/convolution.h"
#include "../kernels/cuda/optimizer.h"
#include "../kernels/cuda/transfer.h"
#include "typed_kernels.h"

namespace needle {
namespace {

// ---- storage and NumPy ----------------------------------------------------------------------------------------------

void FromNumpy(const py::array& from, Buffer& out) {
  CheckDType("from_numpy", "out", out, DTypeOf("from_numpy", from));
  CheckSize("from_numpy", "the NumPy array", from.size(), out.size());
  const py::array contiguous = py::array::ensure(from, py::array::c_style);
  if (!contiguous) throw py::error_already_set();
  const void* data = contiguous.data();
  py::gil_scoped_release release_gil;
  cuda::CopyToDevice(data, out.data(), out.bytes());
}

/// Whether the view is its elements in order, without gaps, so that it needs no compact copy.
bool IsCompact(const Dims& shape, const Dims& strides) {
  int64_t step = 1;
  for (size_t axis = shape.size(); axis-- > 0; step *= shape[axis]) {
    if (shape[axis] != 1 && strides[axis] != step) return false;
  }
  return true;
}

py::array ToNumpy(const Buffer& a, const Dims& shape, const Dims& strides, int64_t offset) {
  const Dims safe = CheckedStrides("to_numpy", shape, strides, offset, a.size());
  py::array copy(NumpyDType(a.dtype()), shape);
  if (copy.size() == 0) return copy;
  void* to = copy.mutable_data();
  py::gil_scoped_release release_gil;
  const int64_t size = CheckedSize("to_numpy", shape), item = ItemSize(a.dtype());
  if (IsCompact(shape, safe)) {
    cuda::CopyToHost(a.as<char>() + offset * item, to, size * item);
  } else {
    Buffer compact(size, a.dtype());
    Compact(a, compact, shape, strides, offset);
    cuda::CopyToHost(compact.data(), to, compact.bytes());
  }
  return copy;
}

// ---- the module -----------------------------------------------------------------------------------------------------

void ExportStorage(py::module_& m) {
  ExportBuffer(m, {m, "Buffer", py::module_local()});
  m.def("from_numpy", &FromNumpy, py::arg("np_array"), py::arg("out"));
  m.def("to_numpy", &ToNumpy, py::arg("a"), py::arg("shape"), py::arg("strides"), py::arg("offset"));
  m.def("synchronize", &cuda::Synchronize, release_gil);
  ExportMemory(m);
}

void ExportConvolution(py::module_& m) {
  const py::arg images("images"), kernel("kernel"), out("out"), out_grad("out_grad"), images_shape("images_shape"),
      kernel_shape("kernel_shape"), stride("stride"), padding("padding");
  m.def("conv_forward", &ConvForward, images, kernel, out, images_shape, kernel_shape, stride, padding, release_gil);
  m.def("conv_to_images", &ConvToImages, out_grad, kernel, out, images_shape, kernel_shape, stride, padding,
        release_gil);
  m.def("conv_to_kernel", &ConvToKernel, images, out_grad, out, images_shape, kernel_shape, stride, padding,
        release_gil);
}

void ExportOptimizers(py::module_& m) {
  const py::arg param("param"), grad("grad"), new_param("new_param"), lr("lr"), weight_decay("weight_decay");
  m.def("sgd_step", &SgdStep, param, grad, py::arg("u"), new_param, py::arg("new_u"), lr, py::arg("momentum"),
        weight_decay, py::arg("correction"), py::arg("nesterov"), release_gil);
  m.def("adam_step", &AdamStep, param, grad, py::arg("m"), py::arg("v"), new_param, py::arg("new_m"), py::arg("new_v"),
        lr, py::arg("beta1"), py::arg("beta2"), py::arg("eps"), weight_decay, py::arg("shrink"),
        py::arg("m_correction"), py::arg("v_correction"), release_gil);
}

}  // namespace

PYBIND11_MODULE(NEEDLE_KERNELS_MODULE, m) {
  m.doc() = "The library's CUDA kernels on flat device storage of six dtypes.";
  ExportStorage(m);
  ExportKernels(m);
  ExportConvolution(m);
  ExportOptimizers(m);
  // faster than the course's plain kernels for a reason that needs no measurement: see each file
  m.attr("__fast__") = py::make_tuple("matmul", "reduce_sum", "reduce_max", "compact", "ewise_setitem");
}

}  // namespace needle
