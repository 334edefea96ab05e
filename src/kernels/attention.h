// Attention, a block of queries at a time: the matrix of all weights is never stored, and what the backward pass needs
// of it is computed again.  (M. N. Rabe and C. Staats, "Self-attention does not need O(n²) memory", 2021; T. Dao et
// al., "FlashAttention", 2022)
#ifndef NEEDLE_KERNELS_ATTENTION_H_
#define NEEDLE_KERNELS_ATTENTION_H_

#include "buffer.h"
#include "isa.h"

namespace needle {

/// out = softmax(q kᵀ / √depth) v for every batch entry and head.  q and out (batch, queries, heads, depth), k and v
/// (batch, keys, heads, depth).  If causal, the last query belongs to the last key, and none sees a later key; there
/// are as many keys as queries, or more.  lse (batch, heads, queries) receives the log Σ exp of each query's logits.
void AttentionForward(const Buffer& q, const Buffer& k, const Buffer& v, Buffer& out, Buffer& lse, int64_t batch,
                      int64_t heads, int64_t queries, int64_t keys, int64_t depth, bool causal);

/// Fills the gradients of q, k and v, given that of out.
void AttentionBackward(const Buffer& q, const Buffer& k, const Buffer& v, const Buffer& out, const Buffer& lse,
                       const Buffer& out_grad, Buffer& q_grad, Buffer& k_grad, Buffer& v_grad, int64_t batch,
                       int64_t heads, int64_t queries, int64_t keys, int64_t depth, bool causal);

// ---- what is done to one row of logits; made for one vector width ---------------------------------------------------

template <typename T>
struct AttentionKernels {
  /// logits → exp(scale * (logits - their maximum)); returns 1 / their sum, and log Σ exp(scale * logits) in lse.
  T (*softmax)(T* logits, int64_t count, T scale, T* lse);
  /// logits → probs = exp(scale * logits - lse); probs_grad → scale * probs * (probs_grad - weighted).
  void (*backward)(T* logits, T* probs_grad, int64_t count, T scale, T lse, T weighted);
  T (*dot)(const T* a, const T* b, int64_t count);
  void (*scale)(T* a, int64_t count, T factor);
};

NEEDLE_FOR_EACH_ISA(template <typename T> AttentionKernels<T> TableOfAttention();)

}  // namespace needle

#endif  // NEEDLE_KERNELS_ATTENTION_H_
