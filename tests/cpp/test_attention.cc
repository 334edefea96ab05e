// Attention, forward and back, against softmax(q kᵀ / √depth) v written out, with the bound of what rounding may do.
#include "bounded.h"
#include "check.h"
#include "kernels/attention.h"

using namespace needle;

struct AttentionSizes {
  int64_t batch, heads, queries, keys, depth;
  bool causal;

  int64_t Visible(int64_t query) const { return causal ? query + 1 + keys - queries : keys; }
  int64_t queries_size() const { return batch * heads * queries * depth; }
  int64_t keys_size() const { return batch * heads * keys * depth; }

  /// Where a row of q, out (steps = queries), k or v (steps = keys) begins.
  int64_t Row(int64_t entry, int64_t head, int64_t steps, int64_t step) const {
    return ((entry * steps + step) * heads + head) * depth;
  }

  /// Call body(entry, head, query, its number in lse).
  template <typename Body>
  void ForEachQuery(const Body& body) const {
    for (int64_t i = 0; i < batch * heads * queries; i++) {
      body(i / queries / heads, i / queries % heads, i % queries, i);
    }
  }
};

// one, vectors and a rest, more keys than queries and fewer, several blocks of queries, enough for three threads
static const std::vector<AttentionSizes> kAttention = {
    {1, 1, 1, 1, 1, false},  {1, 1, 1, 1, 3, true},     {2, 3, 5, 5, 7, true},    {1, 2, 3, 9, 17, true},
    {1, 2, 9, 4, 33, false}, {2, 2, 101, 130, 8, true}, {1, 3, 98, 65, 16, false}};

template <typename T>
struct AttentionOperands {
  std::vector<T> q, k, v, out_grad;

  explicit AttentionOperands(const AttentionSizes& s)
      : q(Reals<T>(s.queries_size(), 1)),
        k(Reals<T>(s.keys_size(), 2)),
        v(Reals<T>(s.keys_size(), 3)),
        out_grad(Reals<T>(s.queries_size(), 4)) {
    for (T& value : q) value *= 4;           // so that some weights are near 0 and some near 1
    for (int64_t i = 0; i < s.depth; i++) {  // a last key so large that an exponential of its logit would overflow
      k[k.size() - 1 - static_cast<size_t>(i)] = static_cast<T>(2000 * (i == 0));
    }
  }
};

template <typename T>
static Bounded<T> Dot(const T* a, const T* b, int64_t count) {
  Sum<T> sum;
  for (int64_t i = 0; i < count; i++) sum.Add(Exact<T>(a[i]) * Exact<T>(b[i]));
  return sum.Total();
}

/// q · k for every key that the query sees.
template <typename T>
static std::vector<Bounded<T>> PlainLogits(const AttentionSizes& s, const AttentionOperands<T>& x, int64_t entry,
                                           int64_t head, int64_t query) {
  std::vector<Bounded<T>> logits;
  for (int64_t j = 0; j < s.Visible(query); j++) {
    logits.push_back(Dot(&x.q[s.Row(entry, head, s.queries, query)], &x.k[s.Row(entry, head, s.keys, j)], s.depth));
  }
  return logits;
}

template <typename T>
static Bounded<T> ScaleOf(const AttentionSizes& s) {
  return Exact<T>(1) / Sqrt(Exact<T>(static_cast<double>(s.depth)));
}

template <typename T>
struct AttentionResults {
  std::vector<Bounded<T>> out, lse;
};

template <typename T>
static AttentionResults<T> PlainAttention(const AttentionSizes& s, const AttentionOperands<T>& x) {
  AttentionResults<T> results{std::vector<Bounded<T>>(x.q.size()), {}};
  s.ForEachQuery([&](int64_t entry, int64_t head, int64_t query, int64_t) {
    std::vector<Bounded<T>> weights = PlainLogits(s, x, entry, head, query);
    Bounded<T> largest = weights[0];
    for (const Bounded<T>& logit : weights) {
      if (logit.value > largest.value) largest.value = logit.value;
      largest.error = std::max(largest.error, logit.error);
    }
    Sum<T> total;
    for (Bounded<T>& weight : weights) total.Add(weight = Exp((weight - largest) * ScaleOf<T>(s)));
    results.lse.push_back(largest * ScaleOf<T>(s) + Log(total.Total()));
    for (int64_t d = 0; d < s.depth; d++) {
      Sum<T> sum;
      for (size_t j = 0; j < weights.size(); j++) {
        sum.Add(weights[j] * Exact<T>(x.v[s.Row(entry, head, s.keys, static_cast<int64_t>(j)) + d]));
      }
      results.out[s.Row(entry, head, s.queries, query) + d] = sum.Total() * (Exact<T>(1) / total.Total());
    }
  });
  return results;
}

template <typename T>
static bool Covered(const std::vector<Bounded<T>>& wanted, const std::vector<T>& got) {
  bool covered = wanted.size() == got.size();
  for (size_t i = 0; covered && i < got.size(); i++) covered = wanted[i].Covers(got[i]);
  return covered;
}

template <typename T>
struct AttentionFast {
  std::vector<T> out, lse;

  AttentionFast(const AttentionSizes& s, AttentionOperands<T>& x)
      : out(x.q.size(), T(99)), lse(static_cast<size_t>(s.batch * s.heads * s.queries), T(99)) {
    Buffer q = View(x.q), k = View(x.k), v = View(x.v), result = View(out), sums = View(lse);
    AttentionForward(q, k, v, result, sums, s.batch, s.heads, s.queries, s.keys, s.depth, s.causal);
  }
};

/// The gradients of q, k and v, as sums of what every query adds.  Σ p dp over the keys is do · o, of the given out.
template <typename T>
struct AttentionGradients {
  std::vector<Sum<T>> q, k, v;

  AttentionGradients(const AttentionSizes& s, const AttentionOperands<T>& x, const AttentionFast<T>& fast)
      : q(x.q.size()), k(x.k.size()), v(x.v.size()) {
    s.ForEachQuery([&](int64_t entry, int64_t head, int64_t query, int64_t number) {
      const int64_t row = s.Row(entry, head, s.queries, query);
      const std::vector<Bounded<T>> logits = PlainLogits(s, x, entry, head, query);
      const Bounded<T> weighted = Dot(&x.out_grad[row], &fast.out[row], s.depth);
      for (int64_t j = 0; j < static_cast<int64_t>(logits.size()); j++) {
        const int64_t key = s.Row(entry, head, s.keys, j);
        const Bounded<T> weight = Exp(logits[j] * ScaleOf<T>(s) - Exact<T>(fast.lse[number]));
        const Bounded<T> to_weight = Dot(&x.out_grad[row], &x.v[key], s.depth);
        const Bounded<T> to_logit = weight * (to_weight - weighted) * ScaleOf<T>(s);
        for (int64_t d = 0; d < s.depth; d++) {
          q[row + d].Add(to_logit * Exact<T>(x.k[key + d]));
          k[key + d].Add(to_logit * Exact<T>(x.q[row + d]));
          v[key + d].Add(weight * Exact<T>(x.out_grad[row + d]));
        }
      }
    });
  }
};

template <typename T>
static bool Covered(const std::vector<Sum<T>>& wanted, const std::vector<T>& got) {
  bool covered = wanted.size() == got.size();
  for (size_t i = 0; covered && i < got.size(); i++) covered = wanted[i].Total().Covers(got[i]);
  return covered;
}

template <typename T>
static void ExpectAttention(const AttentionSizes& s) {
  AttentionOperands<T> x(s);
  const AttentionResults<T> wanted = PlainAttention(s, x);
  ForEachSetting([&] {
    AttentionFast<T> fast(s, x);
    EXPECT(Covered(wanted.out, fast.out));
    EXPECT(Covered(wanted.lse, fast.lse));
  });

  const AttentionFast<T> given(s, x);  // all are held against the gradients of one
  const AttentionGradients<T> grads(s, x, given);
  ForEachSetting([&] {
    std::vector<T> results = given.out, sums = given.lse, to_q(x.q.size(), T(99)), to_k(x.k.size(), T(99)), to_v(to_k);
    Buffer q = View(x.q), k = View(x.k), v = View(x.v), out = View(results), lse = View(sums),
           out_grad = View(x.out_grad), q_grad = View(to_q), k_grad = View(to_k), v_grad = View(to_v);
    AttentionBackward(q, k, v, out, lse, out_grad, q_grad, k_grad, v_grad, s.batch, s.heads, s.queries, s.keys, s.depth,
                      s.causal);
    EXPECT(Covered(grads.q, to_q));
    EXPECT(Covered(grads.k, to_k));
    EXPECT(Covered(grads.v, to_v));
  });
}

TEST(attention_and_its_gradients_equal_the_formula) {
  for (const AttentionSizes& sizes : kAttention) {
    ExpectAttention<float>(sizes);
    ExpectAttention<double>(sizes);
  }
}

TEST(attention_has_the_same_bits_on_any_number_of_threads) {
  const AttentionSizes s{2, 2, 101, 130, 8, true};
  AttentionOperands<float> x(s);
  EXPECT(SameOnAnyThreads([&] { return AttentionFast<float>(s, x).out; }));
}

TEST(attention_of_a_nan_reaches_only_the_queries_that_see_it) {
  const AttentionSizes s{1, 2, 20, 20, 5, true};
  AttentionOperands<float> x(s);
  x.k[s.Row(0, 1, s.keys, 17)] = std::nanf("");
  ForEachSetting([&] {
    const AttentionFast<float> fast(s, x);
    s.ForEachQuery([&](int64_t entry, int64_t head, int64_t query, int64_t) {
      const float got = fast.out[s.Row(entry, head, s.queries, query)];
      EXPECT(std::isnan(got) == (head == 1 && query >= 17));
    });
  });
}

TEST(attention_refuses_what_does_not_fit) {
  Buffer q(6, DType::kFloat32), k(6, DType::kFloat32), v(6, DType::kFloat32), out(6, DType::kFloat32),
      lse(2, DType::kFloat32);
  AttentionForward(q, k, v, out, lse, 1, 1, 2, 2, 3, false);
  EXPECT_THROW(std::invalid_argument, AttentionForward(q, k, v, out, lse, 1, 1, 2, 0, 3, false));
  EXPECT_THROW(std::invalid_argument, AttentionForward(q, k, v, out, lse, 1, 1, 2, 1, 3, true));
  EXPECT_THROW(std::invalid_argument, AttentionForward(q, k, v, q, lse, 1, 1, 2, 2, 3, false));
}
