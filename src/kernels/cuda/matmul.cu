#include "../matmul.h"

#include "../arithmetic.h"
#include "tile_product.h"

namespace needle {
namespace {

/// A thread to each result, of integers and bools: nobody multiplies large matrices of these.
template <typename T>
__global__ void PlainProduct(const T* a, const T* b, T* out, int64_t size, int64_t m, int64_t n, int64_t p,
                             int64_t a_stride, int64_t b_stride) {
  GRID_STRIDE(i, size) {
    const int64_t column = i % p, row = i / p % m, layer = i / p / m;
    T sum = T(0);
    for (int64_t k = 0; k < n; k++) {
      sum = Add(sum, Multiply(a[layer * a_stride + row * n + k], b[layer * b_stride + k * p + column]));
    }
    out[i] = sum;
  }
}

template <typename T>
void LaunchPlain(const Buffer& a, const Buffer& b, Buffer& out, int64_t m, int64_t n, int64_t p, int64_t a_stride,
                 int64_t b_stride) {
  PlainProduct<T><<<cuda::BlocksFor(out.size()), cuda::kThreads>>>(a.as<T>(), b.as<T>(), out.as<T>(), out.size(), m, n,
                                                                   p, a_stride, b_stride);
  CUDA_CHECK(cudaGetLastError());
}

template <typename T>
void LaunchTiled(const Buffer& a, const Buffer& b, Buffer& out, int64_t batch, int64_t m, int64_t n, int64_t p,
                 int64_t a_stride, int64_t b_stride) {
  const cuda::Dense<T, true> left{a.as<T>(), n, a_stride};
  const cuda::Dense<T, false> right{b.as<T>(), p, b_stride};
  cuda::LaunchTileProduct(left, right, out.as<T>(), {m, n, p, batch, 0, n});
}

}  // namespace

// ---- the functions that Python calls --------------------------------------------------------------------------------

void MatmulBatched(const Buffer& a, const Buffer& b, Buffer& out, int64_t batch, int64_t m, int64_t n, int64_t p,
                   int64_t a_stride, int64_t b_stride) {
  const BatchSteps steps = CheckedBatch(a, b, out, batch, m, n, p, a_stride, b_stride);
  if (out.size() == 0) return;
  Visit(a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (kIsFloat<T>) {
      LaunchTiled<T>(a, b, out, batch, m, n, p, steps.a, steps.b);
    } else {
      LaunchPlain<T>(a, b, out, m, n, p, steps.a, steps.b);
    }
  });
}

}  // namespace needle
