// Steps of optimizers: one pass over a parameter, where single operations would make ten.
#ifndef NEEDLE_KERNELS_CUDA_OPTIMIZER_H_
#define NEEDLE_KERNELS_CUDA_OPTIMIZER_H_

#include "../buffer.h"

namespace needle {

/// With g = grad + weight_decay · param: new_u = momentum · u + (1 - momentum) · g and new_param = param - lr · d,
/// where d = new_u / correction or, with nesterov, (momentum · new_u + (1 - momentum) · g) / correction (Sutskever et
/// al. 2013, "On the importance of initialization and momentum in deep learning", equations 3 and 4).
/// A new array may be the old one.
void SgdStep(const Buffer& param, const Buffer& grad, const Buffer& u, Buffer& new_param, Buffer& new_u, double lr,
             double momentum, double weight_decay, double correction, bool nesterov);

/// With g = grad + weight_decay · param: new_m = beta1 · m + (1 - beta1) · g, new_v = beta2 · v + (1 - beta2) · g², and
/// new_param = (1 - shrink) · param - lr · (new_m / m_correction) / (√(new_v / v_correction) + eps) (Kingma and Ba
/// 2015, "Adam", algorithm 1; with shrink in place of weight_decay, Loshchilov and Hutter 2019, algorithm 2).
/// A new array may be the old one.
void AdamStep(const Buffer& param, const Buffer& grad, const Buffer& m, const Buffer& v, Buffer& new_param,
              Buffer& new_m, Buffer& new_v, double lr, double beta1, double beta2, double eps, double weight_decay,
              double shrink, double m_correction, double v_correction);

}  // namespace needle

#endif  // NEEDLE_KERNELS_CUDA_OPTIMIZER_H_
