#include "optimizer.h"

#include <cmath>
#include <utility>

#include "../../checks.h"
#include "launch.h"

namespace needle {
namespace {

// What is left of 1 is worked out in double: in float, 1 - 0.999f is off by one part in 80,000.

template <typename T>
struct Sgd {
  T lr, momentum, rest, weight_decay, correction;  // rest: 1 - momentum
  bool nesterov;
};

template <typename T>
__global__ void SgdOnDevice(Sgd<T> by, const T* param, const T* grad, const T* u, T* new_param, T* new_u,
                            int64_t size) {
  GRID_STRIDE(i, size) {
    const T g = grad[i] + by.weight_decay * param[i];
    const T velocity = by.momentum * u[i] + by.rest * g;
    const T direction = by.nesterov ? by.momentum * velocity + by.rest * g : velocity;
    new_param[i] = param[i] - by.lr * (direction / by.correction);
    new_u[i] = velocity;
  }
}

template <typename T>
struct Adam {
  T lr, beta1, rest1, beta2, rest2, eps, weight_decay, kept, m_correction, v_correction;  // rest: 1 - beta
};

template <typename T>
__global__ void AdamOnDevice(Adam<T> by, const T* param, const T* grad, const T* m, const T* v, T* new_param, T* new_m,
                             T* new_v, int64_t size) {
  GRID_STRIDE(i, size) {
    const T g = grad[i] + by.weight_decay * param[i];
    const T mean = by.beta1 * m[i] + by.rest1 * g;
    const T square = by.beta2 * v[i] + by.rest2 * (g * g);
    const T step = by.lr * (mean / by.m_correction) / (std::sqrt(square / by.v_correction) + by.eps);
    new_param[i] = by.kept * param[i] - step;
    new_m[i] = mean;
    new_v[i] = square;
  }
}

template <typename T>
void LaunchSgd(const Sgd<T>& by, const Buffer& param, const Buffer& grad, const Buffer& u, Buffer& new_param,
               Buffer& new_u) {
  SgdOnDevice<T><<<cuda::BlocksFor(param.size()), cuda::kThreads>>>(by, param.as<T>(), grad.as<T>(), u.as<T>(),
                                                                    new_param.as<T>(), new_u.as<T>(), param.size());
  CUDA_CHECK(cudaGetLastError());
}

template <typename T>
void LaunchAdam(const Adam<T>& by, const Buffer& param, const Buffer& grad, const Buffer& m, const Buffer& v,
                Buffer& new_param, Buffer& new_m, Buffer& new_v) {
  AdamOnDevice<T><<<cuda::BlocksFor(param.size()), cuda::kThreads>>>(by, param.as<T>(), grad.as<T>(), m.as<T>(),
                                                                     v.as<T>(), new_param.as<T>(), new_m.as<T>(),
                                                                     new_v.as<T>(), param.size());
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace

// ---- the functions that Python calls --------------------------------------------------------------------------------

void SgdStep(const Buffer& param, const Buffer& grad, const Buffer& u, Buffer& new_param, Buffer& new_u, double lr,
             double momentum, double weight_decay, double correction, bool nesterov) {
  const char* who = "sgd_step";
  for (auto [what, buffer] : {std::pair<const char*, const Buffer*>{"grad", &grad},
                              {"u", &u},
                              {"new_param", &new_param},
                              {"new_u", &new_u}}) {
    CheckBuffer(who, what, *buffer, param.size(), param.dtype());
  }
  CheckApart(who, new_u, new_param);
  VisitOnly<FloatType>(who, param.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    if (param.size() == 0) return;
    const Sgd<T> by{T(lr), T(momentum), T(1 - momentum), T(weight_decay), T(correction), nesterov};
    LaunchSgd<T>(by, param, grad, u, new_param, new_u);
  });
}

void AdamStep(const Buffer& param, const Buffer& grad, const Buffer& m, const Buffer& v, Buffer& new_param,
              Buffer& new_m, Buffer& new_v, double lr, double beta1, double beta2, double eps, double weight_decay,
              double shrink, double m_correction, double v_correction) {
  const char* who = "adam_step";
  for (auto [what, buffer] : {std::pair<const char*, const Buffer*>{"grad", &grad},
                              {"m", &m},
                              {"v", &v},
                              {"new_param", &new_param},
                              {"new_m", &new_m},
                              {"new_v", &new_v}}) {
    CheckBuffer(who, what, *buffer, param.size(), param.dtype());
  }
  CheckApart(who, new_m, new_param), CheckApart(who, new_v, new_param), CheckApart(who, new_m, new_v);
  VisitOnly<FloatType>(who, param.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    if (param.size() == 0) return;
    const Adam<T> by{T(lr),  T(beta1),        T(1 - beta1),  T(beta2),        T(1 - beta2),
                     T(eps), T(weight_decay), T(1 - shrink), T(m_correction), T(v_correction)};
    LaunchAdam<T>(by, param, grad, m, v, new_param, new_m, new_v);
  });
}

}  // namespace needle
