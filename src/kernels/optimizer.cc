#include "optimizer.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string>

#include "parallel.h"
#include "rounding.h"

namespace needle {
namespace {

constexpr int64_t kGrain = 1 << 15;  // elements that are worth a thread

// ---- what is asked of the arguments ---------------------------------------------------------------------------------

void CheckPresent(const char* who, const char* what, const Buffer* buffer) {
  if (!buffer) throw TypeError(std::string(who) + ": None among " + what + ", wanted buffers");
}

template <typename Buffers>
void CheckLike(const char* who, const char* what, const Buffers& buffers, const Arrays& params) {
  if (buffers.size() != params.size()) {
    Refuse(who, std::string(what) + " are " + std::to_string(buffers.size()) + " arrays, wanted " +
                    std::to_string(params.size()) + ", one for each parameter");
  }
  for (size_t i = 0; i < params.size(); i++) {
    CheckPresent(who, what, buffers[i]);
    CheckBuffer(who, what, *buffers[i], params[i]->size(), params[0]->dtype());
  }
}

/// What a step reads and writes; no `second` for one that remembers one array of each parameter.
struct Lists {
  const Arrays &params, &grads, &first, *second;
  const NewArrays &new_params, &new_first, *new_second;
};

void CheckLists(const char* who, const Lists& lists) {
  for (const Buffer* param : lists.params) CheckPresent(who, "params", param);
  CheckLike(who, "params", lists.params, lists.params);
  CheckLike(who, "grads", lists.grads, lists.params);
  CheckLike(who, "what is remembered", lists.first, lists.params);
  CheckLike(who, "new_params", lists.new_params, lists.params);
  CheckLike(who, "what is newly remembered", lists.new_first, lists.params);
  if (!lists.second) return;
  CheckLike(who, "what is remembered", *lists.second, lists.params);
  CheckLike(who, "what is newly remembered", *lists.new_second, lists.params);
}

// ---- work for threads -----------------------------------------------------------------------------------------------

/// Call body(array, begin, end) for the parts of arrays that make up elements [first, last) of all of them in a row.
template <typename Body>
void ForEachPart(const Arrays& arrays, int64_t first, int64_t last, const Body& body) {
  int64_t start = 0;
  for (size_t i = 0; i < arrays.size() && start < last; start += arrays[i]->size(), i++) {
    const int64_t begin = std::max<int64_t>(first - start, 0), end = std::min(last - start, arrays[i]->size());
    if (begin < end) body(i, begin, end);
  }
}

int64_t TotalSize(const Arrays& arrays) {
  int64_t total = 0;
  for (const Buffer* array : arrays) total += array->size();
  return total;
}

template <typename T>
StepArrays<T> PieceOf(const Lists& lists, size_t i, int64_t begin) {
  return {lists.params[i]->as<T>() + begin,
          lists.grads[i]->as<T>() + begin,
          lists.first[i]->as<T>() + begin,
          lists.second ? (*lists.second)[i]->as<T>() + begin : nullptr,
          lists.new_params[i]->as<T>() + begin,
          lists.new_first[i]->as<T>() + begin,
          lists.new_second ? (*lists.new_second)[i]->as<T>() + begin : nullptr};
}

/// make(T()) gives what takes one StepArrays<T> and their number; threads share all elements of all parameters.
template <typename Make>
void StepAll(const char* who, const Lists& lists, const Make& make) {
  CheckLists(who, lists);
  if (lists.params.empty()) return;
  VisitOnly<FloatType>(who, lists.params[0]->dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const auto step = make(T());
    ParallelFor(TotalSize(lists.params), kGrain, [&](int64_t first, int64_t last) {
      ForEachPart(lists.params, first, last,
                  [&](size_t i, int64_t begin, int64_t end) { step(PieceOf<T>(lists, i, begin), end - begin); });
    });
  });
}

}  // namespace

// ---- the functions that Python calls --------------------------------------------------------------------------------

void SgdSteps(const Arrays& params, const Arrays& grads, const Arrays& u, const NewArrays& new_params,
              const NewArrays& new_u, double lr, double momentum, double weight_decay, double correction,
              bool nesterov) {
  StepAll("sgd_steps", {params, grads, u, nullptr, new_params, new_u, nullptr}, [&](auto zero) {
    using T = decltype(zero);
    const SgdNumbers<T> by{T(lr / correction), T(momentum), T(1 - momentum), T(weight_decay), nesterov};
    return [by, run = NEEDLE_DISPATCH(Sgd<T>)](const StepArrays<T>& piece, int64_t count) { run(by, piece, count); };
  });
}

void AdamSteps(const Arrays& params, const Arrays& grads, const Arrays& m, const Arrays& v, const NewArrays& new_params,
               const NewArrays& new_m, const NewArrays& new_v, double lr, double beta1, double beta2, double eps,
               double weight_decay, double shrink, double m_correction, double v_correction) {
  StepAll("adam_steps", {params, grads, m, &v, new_params, new_m, &new_v}, [&](auto zero) {
    using T = decltype(zero);
    const AdamNumbers<T> by{T(lr / m_correction),
                            T(beta1),
                            T(1 - beta1),
                            T(beta2),
                            T(1 - beta2),
                            T(eps),
                            T(weight_decay),
                            T(1 - shrink),
                            T(1 / std::sqrt(v_correction))};
    return [by, run = NEEDLE_DISPATCH(Adam<T>)](const StepArrays<T>& piece, int64_t count) { run(by, piece, count); };
  });
}

void RmspropSteps(const Arrays& params, const Arrays& grads, const Arrays& u, const Arrays& v,
                  const NewArrays& new_params, const NewArrays& new_u, const NewArrays& new_v, double lr, double alpha,
                  double eps, double momentum, double weight_decay) {
  StepAll("rmsprop_steps", {params, grads, u, &v, new_params, new_u, &new_v}, [&](auto zero) {
    using T = decltype(zero);
    const RmspropNumbers<T> by{T(lr), T(alpha), T(1 - alpha), T(eps), T(momentum), T(weight_decay)};
    return
        [by, run = NEEDLE_DISPATCH(Rmsprop<T>)](const StepArrays<T>& piece, int64_t count) { run(by, piece, count); };
  });
}

double SumOfSquares(const Arrays& arrays) {
  for (const Buffer* array : arrays) CheckPresent("sum_of_squares", "arrays", array);
  double total = 0;
  for (const Buffer* array : arrays) {
    VisitOnly<FloatType>("sum_of_squares", array->dtype(), [&](auto type) {
      using T = typename decltype(type)::type;
      // blocks of one length, so that the sum does not depend on the number of threads
      const int64_t blocks = CeilDiv(array->size(), kGrain);
      std::vector<double> sums(static_cast<size_t>(blocks));
      ParallelFor(blocks, 1, [&](int64_t begin, int64_t end) {
        for (int64_t block = begin; block < end; block++) {
          const int64_t count = std::min(kGrain, array->size() - block * kGrain);
          sums[static_cast<size_t>(block)] = NEEDLE_DISPATCH(SquaresOf<T>)(array->as<T>() + block * kGrain, count);
        }
      });
      for (double sum : sums) total += sum;
    });
  }
  return total;
}

}  // namespace needle
