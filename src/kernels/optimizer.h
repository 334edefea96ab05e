// Steps of optimizers over all parameters at once: one pass over memory, where single operations would make ten.
#ifndef NEEDLE_KERNELS_OPTIMIZER_H_
#define NEEDLE_KERNELS_OPTIMIZER_H_

#include <vector>

#include "../checks.h"
#include "buffer.h"
#include "isa.h"

namespace needle {

using Arrays = std::vector<const Buffer*>;  // one for each parameter
using NewArrays = std::vector<Buffer*>;

// A new array may be the old one.  In what follows g = grad + weight_decay · param.

/// new_u = momentum · u + (1 - momentum) · g and new_param = param - lr · d, where d = new_u / correction or, with
/// nesterov, (momentum · new_u + (1 - momentum) · g) / correction (Sutskever et al. 2013, "On the importance of
/// initialization and momentum in deep learning", equations 3 and 4).
void SgdSteps(const Arrays& params, const Arrays& grads, const Arrays& u, const NewArrays& new_params,
              const NewArrays& new_u, double lr, double momentum, double weight_decay, double correction,
              bool nesterov);

/// new_m = beta1 · m + (1 - beta1) · g, new_v = beta2 · v + (1 - beta2) · g², and new_param = (1 - shrink) · param -
/// lr · (new_m / m_correction) / (√(new_v / v_correction) + eps) (Kingma and Ba 2015, "Adam", algorithm 1; with shrink
/// in place of weight_decay, Loshchilov and Hutter 2019, algorithm 2).
void AdamSteps(const Arrays& params, const Arrays& grads, const Arrays& m, const Arrays& v, const NewArrays& new_params,
               const NewArrays& new_m, const NewArrays& new_v, double lr, double beta1, double beta2, double eps,
               double weight_decay, double shrink, double m_correction, double v_correction);

/// new_v = alpha · v + (1 - alpha) · g², new_u = momentum · u + g / (√new_v + eps) and new_param = param - lr · new_u
/// (Tieleman and Hinton 2012, lecture 6.5).
void RmspropSteps(const Arrays& params, const Arrays& grads, const Arrays& u, const Arrays& v,
                  const NewArrays& new_params, const NewArrays& new_u, const NewArrays& new_v, double lr, double alpha,
                  double eps, double momentum, double weight_decay);

/// The sum of the squares of all elements of all arrays.
double SumOfSquares(const Arrays& arrays);

// ---- for each instruction set ---------------------------------------------------------------------------------------

// What is left of 1 is worked out in double: in float, 1 - 0.999f is off by one part in 80,000.

template <typename T>
struct SgdNumbers {
  T step, momentum, rest, weight_decay;  // step: lr / correction; rest: 1 - momentum
  bool nesterov;
};

template <typename T>
struct AdamNumbers {
  T step, beta1, rest1, beta2, rest2, eps, weight_decay, kept,
      root;  // step: lr / m_correction; root: 1 / √v_correction
};

template <typename T>
struct RmspropNumbers {
  T lr, alpha, rest, eps, momentum, weight_decay;
};

/// Elements of one parameter: the old ones, with what is remembered of them, and where the new ones go.
template <typename T>
struct StepArrays {
  const T *param, *grad, *first, *second;
  T *new_param, *new_first, *new_second;
};

// The result for an element does not depend on where the piece begins and ends.
NEEDLE_FOR_EACH_ISA(                                                                                             //
    template <typename T> void Sgd(const SgdNumbers<T>& by, const StepArrays<T>& piece, int64_t count);          //
    template <typename T> void Adam(const AdamNumbers<T>& by, const StepArrays<T>& piece, int64_t count);        //
    template <typename T> void Rmsprop(const RmspropNumbers<T>& by, const StepArrays<T>& piece, int64_t count);  //
    template <typename T> double SquaresOf(const T* values, int64_t count);)

}  // namespace needle

#endif  // NEEDLE_KERNELS_OPTIMIZER_H_
