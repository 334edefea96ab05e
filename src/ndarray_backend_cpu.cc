// The course's CPU kernels: plain loops over flat float32 storage.
//
// An array in Python is a shape, strides and an offset over one AlignedArray; the bindings have checked that every
// index which these describe lies inside the storage, and that there is at least one element to work on.
#include <cmath>
#include <cstdint>

#include "aligned_array.h"

namespace needle {
namespace cpu {

/// Set every element to val.
void Fill(AlignedArray* out, scalar_t val) {
  for (size_t i = 0; i < out->size; i++) out->ptr[i] = val;
}

// ---- strided views ------------------------------------------------------------------------------------------------

/// BEGIN YOUR SOLUTION hw3/compact
/// Call visit(i, position) for the elements i = 0, 1, 2, ... of a view in row-major order; position is where
/// the i-th element lies in the storage.
template <typename Visit>
static void ForEachElement(const Dims& shape, const Dims& strides, int64_t offset, Visit visit) {
  int64_t size = 1;
  for (int64_t extent : shape) size *= extent;

  Dims index(shape.size(), 0);
  int64_t position = offset;
  for (int64_t i = 0; i < size; i++) {
    visit(i, position);
    // count up like an odometer: the last axis turns fastest, a full wheel goes back to 0 and moves the one before it
    for (size_t axis = shape.size(); axis-- > 0;) {
      position += strides[axis];
      if (++index[axis] < shape[axis]) break;
      position -= strides[axis] * shape[axis];
      index[axis] = 0;
    }
  }
}

/// Copy the view of `a` that shape, strides and offset describe into `out`, in row-major order.
void Compact(const AlignedArray& a, AlignedArray* out, const Dims& shape, const Dims& strides, int64_t offset) {
  ForEachElement(shape, strides, offset, [&](int64_t i, int64_t position) { out->ptr[i] = a.ptr[position]; });
}
/// STARTER
// /// Call visit(i, position) for the elements i = 0, 1, 2, ... of a view in row-major order; position is where
// /// the i-th element lies in the storage.  (One way to share the walk among the three functions of this part.)
// template <typename Visit>
// static void ForEachElement(const Dims& shape, const Dims& strides, int64_t offset, Visit visit) {
//   throw NotImplemented("hw3/compact");
// }
//
// /// Copy the view of `a` that shape, strides and offset describe into `out`, in row-major order.
// void Compact(const AlignedArray& a, AlignedArray* out, const Dims& shape, const Dims& strides, int64_t offset) {
//   throw NotImplemented("hw3/compact");
// }
/// END YOUR SOLUTION hw3/compact

/// Copy `a`, which is compact, into the view of `out` that shape, strides and offset describe.
void EwiseSetitem(const AlignedArray& a, AlignedArray* out, const Dims& shape, const Dims& strides, int64_t offset) {
  /// BEGIN YOUR SOLUTION hw3/ewise_setitem
  ForEachElement(shape, strides, offset, [&](int64_t i, int64_t position) { out->ptr[position] = a.ptr[i]; });
  /// END YOUR SOLUTION hw3/ewise_setitem
}

/// Set the `size` elements of the view of `out` that shape, strides and offset describe to val.
void ScalarSetitem(size_t /*size*/, scalar_t val, AlignedArray* out, const Dims& shape, const Dims& strides,
                   int64_t offset) {
  /// BEGIN YOUR SOLUTION hw3/scalar_setitem
  ForEachElement(shape, strides, offset, [&](int64_t, int64_t position) { out->ptr[position] = val; });
  /// END YOUR SOLUTION hw3/scalar_setitem
}

// ---- element-wise and scalar operations ---------------------------------------------------------------------------

/// The larger of two numbers; a NaN wins, as in NumPy.
static inline scalar_t Max(scalar_t a, scalar_t b) {
  return a > b || std::isnan(a) ? a : b;
}

// clang-format off
//                   name     python name        out[i] from a[i] and b[i]
NEEDLE_EWISE_BINARY(Add,      "ewise_add",       a + b);
/// BEGIN YOUR SOLUTION hw3/ewise_mul
NEEDLE_EWISE_BINARY(Mul,      "ewise_mul",       a * b);
/// STARTER
// NEEDLE_EWISE_BINARY(Mul,      "ewise_mul",       Blank("hw3/ewise_mul"));
/// END YOUR SOLUTION hw3/ewise_mul
/// BEGIN YOUR SOLUTION hw3/ewise_div
NEEDLE_EWISE_BINARY(Div,      "ewise_div",       a / b);
/// STARTER
// NEEDLE_EWISE_BINARY(Div,      "ewise_div",       Blank("hw3/ewise_div"));
/// END YOUR SOLUTION hw3/ewise_div
/// BEGIN YOUR SOLUTION hw3/ewise_maximum
NEEDLE_EWISE_BINARY(Maximum,  "ewise_maximum",   Max(a, b));
/// STARTER
// NEEDLE_EWISE_BINARY(Maximum,  "ewise_maximum",   Blank("hw3/ewise_maximum"));
/// END YOUR SOLUTION hw3/ewise_maximum
/// BEGIN YOUR SOLUTION hw3/ewise_eq
NEEDLE_EWISE_BINARY(Eq,       "ewise_eq",        a == b);
/// STARTER
// NEEDLE_EWISE_BINARY(Eq,       "ewise_eq",        Blank("hw3/ewise_eq"));
/// END YOUR SOLUTION hw3/ewise_eq
/// BEGIN YOUR SOLUTION hw3/ewise_ge
NEEDLE_EWISE_BINARY(Ge,       "ewise_ge",        a >= b);
/// STARTER
// NEEDLE_EWISE_BINARY(Ge,       "ewise_ge",        Blank("hw3/ewise_ge"));
/// END YOUR SOLUTION hw3/ewise_ge

//                   name     python name        out[i] from a[i] and val
NEEDLE_EWISE_SCALAR(Add,      "scalar_add",      a + val);
/// BEGIN YOUR SOLUTION hw3/scalar_mul
NEEDLE_EWISE_SCALAR(Mul,      "scalar_mul",      a * val);
/// STARTER
// NEEDLE_EWISE_SCALAR(Mul,      "scalar_mul",      Blank("hw3/scalar_mul"));
/// END YOUR SOLUTION hw3/scalar_mul
/// BEGIN YOUR SOLUTION hw3/scalar_div
NEEDLE_EWISE_SCALAR(Div,      "scalar_div",      a / val);
/// STARTER
// NEEDLE_EWISE_SCALAR(Div,      "scalar_div",      Blank("hw3/scalar_div"));
/// END YOUR SOLUTION hw3/scalar_div
/// BEGIN YOUR SOLUTION hw3/scalar_power
NEEDLE_EWISE_SCALAR(Power,    "scalar_power",    std::pow(a, val));
/// STARTER
// NEEDLE_EWISE_SCALAR(Power,    "scalar_power",    Blank("hw3/scalar_power"));
/// END YOUR SOLUTION hw3/scalar_power
/// BEGIN YOUR SOLUTION hw3/scalar_maximum
NEEDLE_EWISE_SCALAR(Maximum,  "scalar_maximum",  Max(a, val));
/// STARTER
// NEEDLE_EWISE_SCALAR(Maximum,  "scalar_maximum",  Blank("hw3/scalar_maximum"));
/// END YOUR SOLUTION hw3/scalar_maximum
/// BEGIN YOUR SOLUTION hw3/scalar_eq
NEEDLE_EWISE_SCALAR(Eq,       "scalar_eq",       a == val);
/// STARTER
// NEEDLE_EWISE_SCALAR(Eq,       "scalar_eq",       Blank("hw3/scalar_eq"));
/// END YOUR SOLUTION hw3/scalar_eq
/// BEGIN YOUR SOLUTION hw3/scalar_ge
NEEDLE_EWISE_SCALAR(Ge,       "scalar_ge",       a >= val);
/// STARTER
// NEEDLE_EWISE_SCALAR(Ge,       "scalar_ge",       Blank("hw3/scalar_ge"));
/// END YOUR SOLUTION hw3/scalar_ge

//                   name     python name        out[i] from a[i]
/// BEGIN YOUR SOLUTION hw3/ewise_log
NEEDLE_EWISE_UNARY(Log,       "ewise_log",       std::log(a));
/// STARTER
// NEEDLE_EWISE_UNARY(Log,       "ewise_log",       Blank("hw3/ewise_log"));
/// END YOUR SOLUTION hw3/ewise_log
/// BEGIN YOUR SOLUTION hw3/ewise_exp
NEEDLE_EWISE_UNARY(Exp,       "ewise_exp",       std::exp(a));
/// STARTER
// NEEDLE_EWISE_UNARY(Exp,       "ewise_exp",       Blank("hw3/ewise_exp"));
/// END YOUR SOLUTION hw3/ewise_exp
/// BEGIN YOUR SOLUTION hw3/ewise_tanh
NEEDLE_EWISE_UNARY(Tanh,      "ewise_tanh",      std::tanh(a));
/// STARTER
// NEEDLE_EWISE_UNARY(Tanh,      "ewise_tanh",      Blank("hw3/ewise_tanh"));
/// END YOUR SOLUTION hw3/ewise_tanh
// clang-format on

// ---- matrix multiplication ----------------------------------------------------------------------------------------

/// out = a @ b: (m, n) times (n, p), all row-major.
void Matmul(const AlignedArray& a, const AlignedArray& b, AlignedArray* out, int64_t m, int64_t n, int64_t p) {
  /// BEGIN YOUR SOLUTION hw3/matmul
  Fill(out, 0);
  for (int64_t row = 0; row < m; row++) {
    for (int64_t k = 0; k < n; k++) {
      // b and out are walked along their rows, so that the innermost loop reads neighbouring elements
      for (int64_t j = 0; j < p; j++) out->ptr[row * p + j] += a.ptr[row * n + k] * b.ptr[k * p + j];
    }
  }
  /// END YOUR SOLUTION hw3/matmul
}

/// out += a @ b for three kTile x kTile blocks.  The compiler may assume that the blocks are aligned and do not
/// overlap.
static inline void AlignedDot(const scalar_t* __restrict__ a, const scalar_t* __restrict__ b,
                              scalar_t* __restrict__ out) {
  a = static_cast<const scalar_t*>(__builtin_assume_aligned(a, kAlignment));
  b = static_cast<const scalar_t*>(__builtin_assume_aligned(b, kAlignment));
  out = static_cast<scalar_t*>(__builtin_assume_aligned(out, kAlignment));
  /// BEGIN YOUR SOLUTION hw3/aligned_dot
  for (size_t i = 0; i < kTile; i++) {
    for (size_t k = 0; k < kTile; k++) {
      for (size_t j = 0; j < kTile; j++) out[i * kTile + j] += a[i * kTile + k] * b[k * kTile + j];
    }
  }
  /// END YOUR SOLUTION hw3/aligned_dot
}

/// out = a @ b for operands stored block by block: (m/kTile, n/kTile, kTile, kTile) and so on.
void MatmulTiled(const AlignedArray& a, const AlignedArray& b, AlignedArray* out, int64_t m, int64_t n, int64_t p) {
  /// BEGIN YOUR SOLUTION hw3/matmul_tiled
  const int64_t rows = m / kTile, inner = n / kTile, columns = p / kTile, block = kTile * kTile;
  Fill(out, 0);
  for (int64_t i = 0; i < rows; i++) {
    for (int64_t j = 0; j < columns; j++) {
      for (int64_t k = 0; k < inner; k++) {
        AlignedDot(a.ptr + (i * inner + k) * block, b.ptr + (k * columns + j) * block,
                   out->ptr + (i * columns + j) * block);
      }
    }
  }
  /// END YOUR SOLUTION hw3/matmul_tiled
}

// ---- reductions ---------------------------------------------------------------------------------------------------

/// out[i] = the maximum of the i-th run of reduce_size elements of `a`.
void ReduceMax(const AlignedArray& a, AlignedArray* out, size_t reduce_size) {
  /// BEGIN YOUR SOLUTION hw3/reduce_max
  for (size_t i = 0; i < out->size; i++) {
    const scalar_t* run = a.ptr + i * reduce_size;
    scalar_t largest = run[0];
    for (size_t k = 1; k < reduce_size; k++) largest = Max(largest, run[k]);
    out->ptr[i] = largest;
  }
  /// END YOUR SOLUTION hw3/reduce_max
}

/// out[i] = the sum of the i-th run of reduce_size elements of `a`.
void ReduceSum(const AlignedArray& a, AlignedArray* out, size_t reduce_size) {
  /// BEGIN YOUR SOLUTION hw3/reduce_sum
  for (size_t i = 0; i < out->size; i++) {
    const scalar_t* run = a.ptr + i * reduce_size;
    scalar_t sum = 0;
    for (size_t k = 0; k < reduce_size; k++) sum += run[k];
    out->ptr[i] = sum;
  }
  /// END YOUR SOLUTION hw3/reduce_sum
}

}  // namespace cpu
}  // namespace needle
