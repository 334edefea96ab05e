#include "matmul.h"

#include <algorithm>

#include "arithmetic.h"
#include "gemm.h"
#include "parallel.h"

namespace needle {
namespace {

constexpr int64_t kGrain = 1 << 16;      // multiplications
constexpr int64_t kSmallGemm = 1 << 12;  // fewer are done before a matrix is packed

/// Rows [begin, end) of a product.
template <typename T>
void PlainRows(const T* a, const T* b, T* out, int64_t n, int64_t p, int64_t begin, int64_t end) {
  std::fill(out + begin * p, out + end * p, T(0));
  for (int64_t i = begin; i < end; i++) {
    for (int64_t k = 0; k < n; k++) {
      for (int64_t j = 0; j < p; j++) out[i * p + j] = Add(out[i * p + j], Multiply(a[i * n + k], b[k * p + j]));
    }
  }
}

/// The fast product where there is one.
template <typename T>
void OneMatmul(const T* a, const T* b, T* out, int64_t m, int64_t n, int64_t p) {
  if constexpr (kIsFloat<T>) {
    if (m * n * p > kSmallGemm) return Gemm<T>({a, n, 1}, {b, p, 1}, {m, n, p}, out, p);
  }
  PlainMatmul(a, b, out, m, n, p);
}

}  // namespace

template <typename T>
void PlainMatmul(const T* a, const T* b, T* out, int64_t m, int64_t n, int64_t p) {
  ParallelFor(m, 1 + kGrain / std::max<int64_t>(1, n * p), [&](int64_t begin, int64_t end) {  //
    PlainRows(a, b, out, n, p, begin, end);
  });
}

void MatmulBatched(const Buffer& a, const Buffer& b, Buffer& out, int64_t batch, int64_t m, int64_t n, int64_t p,
                   int64_t a_stride, int64_t b_stride) {
  const BatchSteps steps = CheckedBatch(a, b, out, batch, m, n, p, a_stride, b_stride);
  if (out.size() == 0) return;
  Visit(a.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    // threads share the batch if there is a product for each of them, and else each product
    ParallelFor(batch, batch < NumThreads() ? batch : 1 + kGrain / std::max<int64_t>(1, m * n * p),
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; i++) {
                    OneMatmul(a.as<T>() + i * steps.a, b.as<T>() + i * steps.b, out.as<T>() + i * m * p, m, n, p);
                  }
                });
  });
}

#define NEEDLE_INSTANTIATE(number, T, name) \
  template void PlainMatmul<T>(const T*, const T*, T*, int64_t, int64_t, int64_t);
NEEDLE_DTYPES(NEEDLE_INSTANTIATE)

}  // namespace needle
