// How a kernel says that an element of its input is not allowed: it notes the lowest number of such an element.
#ifndef NEEDLE_KERNELS_CUDA_FIRST_PROBLEM_H_
#define NEEDLE_KERNELS_CUDA_FIRST_PROBLEM_H_

#include "../buffer.h"
#include "launch.h"

namespace needle {
namespace cuda {

/// One number in device memory.
class FirstProblem {
 public:
  FirstProblem() : number_(1, DType::kInt64) {
    CUDA_CHECK(cudaMemcpy(number_.data(), &kNone, sizeof(kNone), cudaMemcpyHostToDevice));
  }

  /// What kernels take, to call atomicMin on.
  long long* device() { return number_.as<long long>(); }

  /// The element that the kernels found, or kNone.  Waits for them.
  int64_t Find() const {
    long long found = 0;
    CUDA_CHECK(cudaMemcpy(&found, number_.data(), sizeof(found), cudaMemcpyDeviceToHost));
    return found;
  }

  static constexpr long long kNone = INT64_MAX;

 private:
  Buffer number_;
};

}  // namespace cuda
}  // namespace needle

#endif  // NEEDLE_KERNELS_CUDA_FIRST_PROBLEM_H_
