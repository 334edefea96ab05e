// The bends of neural networks and their gradients, each in one pass over memory.
#ifndef NEEDLE_KERNELS_ACTIVATIONS_H_
#define NEEDLE_KERNELS_ACTIVATIONS_H_

#include <vector>

#include "elementwise.h"

namespace needle {

/// sigmoid, silu (a sigmoid(a)), gelu (in the tanh form).
std::vector<Row<UnaryKernel>> ActivationRows();

/// name_backward(a, out_grad, out): the gradient of a; for tanh and sigmoid a is the result, which tells as much.
std::vector<Row<BinaryKernel>> ActivationBackwardRows();

/// out = a / keep where uniform <= keep, elsewhere 0 times a (Srivastava et al. 2014); all 0 where keep is 0.
void Dropout(const Buffer& a, const Buffer& uniform, double keep, Buffer& out);

}  // namespace needle

#endif  // NEEDLE_KERNELS_ACTIVATIONS_H_
