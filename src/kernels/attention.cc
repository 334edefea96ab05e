#include "attention.h"

#include <algorithm>
#include <cmath>

#include "../checks.h"
#include "gemm.h"
#include "parallel.h"
#include "rounding.h"
#include "scratch.h"

namespace needle {
namespace {

constexpr int64_t kMostQueries = 96;      // so many rows of logits at a time, for the sake of the caches
constexpr int64_t kThreadWork = 1 << 17;  // multiplications that are worth a thread

struct Sizes {
  int64_t batch, heads, queries, keys, depth;
  bool causal;

  int64_t stride() const { return heads * depth; }  // from one time step to the next
  int64_t blocks() const { return CeilDiv(queries, kMostQueries); }
  int64_t block_rows() const { return CeilDiv(queries, blocks()); }
  /// How many keys the query sees.
  int64_t Visible(int64_t query) const { return causal ? query + 1 + keys - queries : keys; }

  /// Where the rows of a head begin in q, k, v and out.
  int64_t Begin(int64_t entry, int64_t head, int64_t steps) const { return (entry * steps * heads + head) * depth; }
};

Sizes CheckedSizes(const char* who, int64_t batch, int64_t heads, int64_t queries, int64_t keys, int64_t depth,
                   bool causal) {
  CheckedSize(who, {batch, heads, queries, depth});
  CheckedSize(who, {batch, heads, keys, depth});
  CheckedSize(who, {kMostQueries, keys});
  CheckedSize(who, {queries, keys, depth});
  if (batch < 1 || heads < 1 || queries < 1 || keys < 1 || depth < 1) Refuse(who, "an extent below 1");
  if (causal && queries > keys) {
    Refuse(who, std::to_string(queries) + " causal queries of " + std::to_string(keys) + " keys, wanted no more");
  }
  return {batch, heads, queries, keys, depth, causal};
}

/// One block of queries of one head: rows [first, first + rows), which see `visible` keys or fewer.
template <typename T>
struct Block {
  const Sizes& s;
  int64_t first, rows, visible;

  Block(const Sizes& sizes, int64_t number)
      : s(sizes),
        first(number * sizes.block_rows()),
        rows(std::min(sizes.block_rows(), sizes.queries - first)),
        visible(rows > 0 ? sizes.Visible(first + rows - 1) : 0) {}

  /// a bᵀ: (rows, depth) of queries with (visible, depth) of keys.
  void MultiplyByKeys(const T* a, const T* b, T* out) const {
    SerialGemm<T>({a + first * s.stride(), s.stride(), 1}, {b, 1, s.stride()}, {rows, s.depth, visible}, out, visible);
  }

  /// weights (rows, visible) times (visible, depth) of keys → rows of queries.
  void SumOverKeys(const T* weights, const T* b, T* out) const {
    SerialGemm<T>({weights, visible, 1}, {b, s.stride(), 1}, {rows, visible, s.depth}, out + first * s.stride(),
                  s.stride());
  }

  /// out (visible, depth) of keys += weightsᵀ times (rows, depth) of queries.
  void AddToKeys(const T* weights, const T* a, T* out) const {
    SerialGemm<T>({weights, 1, visible}, {a + first * s.stride(), s.stride(), 1}, {visible, rows, s.depth}, out,
                  s.stride(), Accumulated<T>());
  }

  /// Call body(query, its row of `weights`, how many keys it sees); what it does not see becomes 0 afterwards.
  template <typename Body>
  void ForEachQuery(T* weights, const Body& body) const {
    for (int64_t i = 0; i < rows; i++) {
      const int64_t count = s.Visible(first + i);
      body(first + i, weights + i * visible, count);
      std::fill(weights + i * visible + count, weights + (i + 1) * visible, T(0));
    }
  }
};

template <typename T>
void Forward(const Sizes& s, const T* q, const T* k, const T* v, T* out, T* lse) {
  const AttentionKernels<T> kernels = NEEDLE_DISPATCH(TableOfAttention<T>)();
  const T scale = 1 / std::sqrt(static_cast<T>(s.depth));
  const int64_t work = s.block_rows() * s.keys * s.depth;
  ParallelFor(s.batch * s.heads * s.blocks(), 1 + kThreadWork / work, [&](int64_t begin, int64_t end) {
    Scratch scratch;
    T* weights = scratch.Get<T>(static_cast<size_t>(s.block_rows() * s.keys));
    for (int64_t task = begin; task < end; task++) {
      const Block<T> block(s, task % s.blocks());
      if (block.rows <= 0) continue;
      const int64_t of_head = task / s.blocks(), entry = of_head / s.heads, head = of_head % s.heads;
      const int64_t queries = s.Begin(entry, head, s.queries), keys = s.Begin(entry, head, s.keys);
      block.MultiplyByKeys(q + queries, k + keys, weights);
      T inverse[kMostQueries];
      block.ForEachQuery(weights, [&](int64_t query, T* row, int64_t count) {
        inverse[query - block.first] = kernels.softmax(row, count, scale, lse + of_head * s.queries + query);
      });
      block.SumOverKeys(weights, v + keys, out + queries);
      for (int64_t i = 0; i < block.rows; i++) {
        kernels.scale(out + queries + (block.first + i) * s.stride(), s.depth, inverse[i]);
      }
    }
  });
}

/// Zeros in (steps, depth) of one head.
template <typename T>
void Clear(const Sizes& s, int64_t steps, T* out) {
  for (int64_t i = 0; i < steps; i++) std::fill(out + i * s.stride(), out + i * s.stride() + s.depth, T(0));
}

template <typename T>
struct Operands {
  const T *q, *k, *v, *out, *lse, *out_grad;
  T *q_grad, *k_grad, *v_grad;
};

/// All blocks of one head.  With probs p: dv = pᵀ do, dp = do vᵀ, ds = p (dp - Σ p dp) / √depth, dq = ds k, dk = dsᵀ q;
/// and Σ p dp over the keys is do · o.
template <typename T>
void BackwardOfHead(const Sizes& s, const Operands<T>& x, const AttentionKernels<T>& kernels, T* logits,
                    T* probs_grad) {
  const T scale = 1 / std::sqrt(static_cast<T>(s.depth));
  Clear(s, s.keys, x.k_grad);
  Clear(s, s.keys, x.v_grad);
  for (int64_t number = 0; number < s.blocks(); number++) {
    const Block<T> block(s, number);
    if (block.rows <= 0) continue;
    block.MultiplyByKeys(x.q, x.k, logits);
    block.MultiplyByKeys(x.out_grad, x.v, probs_grad);
    block.ForEachQuery(logits, [&](int64_t query, T* row, int64_t count) {
      const T weighted = kernels.dot(x.out_grad + query * s.stride(), x.out + query * s.stride(), s.depth);
      T* grad = probs_grad + (row - logits);
      kernels.backward(row, grad, count, scale, x.lse[query], weighted);
      std::fill(grad + count, grad + block.visible, T(0));
    });
    block.SumOverKeys(probs_grad, x.k, x.q_grad);
    block.AddToKeys(probs_grad, x.q, x.k_grad);
    block.AddToKeys(logits, x.out_grad, x.v_grad);
  }
}

}  // namespace

void AttentionForward(const Buffer& q, const Buffer& k, const Buffer& v, Buffer& out, Buffer& lse, int64_t batch,
                      int64_t heads, int64_t queries, int64_t keys, int64_t depth, bool causal) {
  const char* who = "attention_forward";
  const Sizes s = CheckedSizes(who, batch, heads, queries, keys, depth, causal);
  const int64_t of_queries = batch * queries * s.stride(), of_keys = batch * keys * s.stride();
  CheckSize(who, "q", q.size(), of_queries);
  CheckBuffer(who, "k", k, of_keys, q.dtype());
  CheckBuffer(who, "v", v, of_keys, q.dtype());
  CheckBuffer(who, "out", out, of_queries, q.dtype());
  CheckBuffer(who, "lse", lse, batch * heads * queries, q.dtype());
  for (const Buffer* in : {&q, &k, &v}) CheckApart(who, *in, out);
  for (const Buffer* in : {&q, &k, &v, static_cast<const Buffer*>(&out)}) CheckApart(who, *in, lse);
  VisitOnly<FloatType>(who, q.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    Forward<T>(s, q.as<T>(), k.as<T>(), v.as<T>(), out.as<T>(), lse.as<T>());
  });
}

void AttentionBackward(const Buffer& q, const Buffer& k, const Buffer& v, const Buffer& out, const Buffer& lse,
                       const Buffer& out_grad, Buffer& q_grad, Buffer& k_grad, Buffer& v_grad, int64_t batch,
                       int64_t heads, int64_t queries, int64_t keys, int64_t depth, bool causal) {
  const char* who = "attention_backward";
  const Sizes s = CheckedSizes(who, batch, heads, queries, keys, depth, causal);
  const int64_t of_queries = batch * queries * s.stride(), of_keys = batch * keys * s.stride();
  CheckSize(who, "q", q.size(), of_queries);
  CheckBuffer(who, "k", k, of_keys, q.dtype());
  CheckBuffer(who, "v", v, of_keys, q.dtype());
  CheckBuffer(who, "out", out, of_queries, q.dtype());
  CheckBuffer(who, "lse", lse, batch * heads * queries, q.dtype());
  CheckBuffer(who, "out_grad", out_grad, of_queries, q.dtype());
  CheckBuffer(who, "q_grad", q_grad, of_queries, q.dtype());
  CheckBuffer(who, "k_grad", k_grad, of_keys, q.dtype());
  CheckBuffer(who, "v_grad", v_grad, of_keys, q.dtype());
  for (const Buffer* result : {&q_grad, &k_grad, &v_grad}) {
    for (const Buffer* in : {&q, &k, &v, &out, &lse, &out_grad}) CheckApart(who, *in, *result);
  }
  CheckApart(who, q_grad, k_grad);
  CheckApart(who, q_grad, v_grad);
  CheckApart(who, k_grad, v_grad);
  VisitOnly<FloatType>(who, q.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const AttentionKernels<T> kernels = NEEDLE_DISPATCH(TableOfAttention<T>)();
    ParallelFor(batch * heads, 1 + kThreadWork / (queries * keys * depth), [&](int64_t begin, int64_t end) {
      Scratch logits, probs_grad;
      const size_t room = static_cast<size_t>(s.block_rows() * keys);
      for (int64_t task = begin; task < end; task++) {
        const int64_t at_queries = s.Begin(task / heads, task % heads, queries);
        const int64_t at_keys = s.Begin(task / heads, task % heads, keys);
        const Operands<T> head{q.as<T>() + at_queries,      k.as<T>() + at_keys,          v.as<T>() + at_keys,
                               out.as<T>() + at_queries,    lse.as<T>() + task * queries, out_grad.as<T>() + at_queries,
                               q_grad.as<T>() + at_queries, k_grad.as<T>() + at_keys,     v_grad.as<T>() + at_keys};
        BackwardOfHead<T>(s, head, kernels, logits.Get<T>(room), probs_grad.Get<T>(room));
      }
    });
  });
}

}  // namespace needle
