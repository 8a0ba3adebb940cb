// The gradients of one chunk of queries and keys in PolynomialAttention.
#pragma once

#include "heed/core/kernels/linear_attention/polynomial_pair_matrix.h"
#include "heed/core/kernels/linear_attention/polynomial_state.h"

namespace heed::kernel {

/// The gradients of a head: dout is read, the others are written. Row t begins t ld after the pointer.
template <class T>
struct PolynomialGradients {
  Rows<T> dout{nullptr, 0};
  T *dq = nullptr, *dk = nullptr, *dv = nullptr;
  int64_t ld_dq = 0, ld_dk = 0, ld_dv = 0;
};

/// Gradients of a chunk of queries and a chunk of keys, which load_queries() and load_keys() load. Functions
/// named add_.. add to dq, dk and dv of the loaded tokens, in terms of mapped rows, or to a state.
///
/// With g_i = [dout_i, -dout_i . out_i] / (sum of weights of query i), the gradients of its weighted sum of
/// values and of its sum of weights, and v1_j = [v_j, 1], the gradient of the weight w_ij is g_i . v1_j.
/// - Pair by pair, with S = K^T Q [keys, queries], W = f(S), dW = V1^T G and dS = dW f'(S): dq += K dS,
///   dk += Q dS^T, dv += W g.
/// - Through features phi: a key state, the sum over keys of phi(k_j) v1_j^T, times g_i gives the gradients
/// of
///   a query's features. A query state, the sum over queries of phi(q_i) g_i^T, times v1_j gives the
///   gradients of a key's features, and its transpose times phi(k_j) gives dv_j.
template <class T>
class PolynomialBackChunk {
 public:
  static int64_t scratch(const PolynomialPlan<T>& plan) {
    const int64_t C = plan.chunk;
    return 2 * BumpAllocator<T>::rounded(MappedChunk<T>::scratch(plan)) + 3 * C * C +
           3 * plan.block_rows * C + 2 * BumpAllocator<T>::rounded((plan.dv + 1) * C) +
           3 * C * plan.padded_dv + 2 * BumpAllocator<T>::rounded(plan.d * C) + C;
  }
  PolynomialBackChunk(const PolynomialPlan<T>& plan, const PolynomialDropoutDraws<T>& dropout, T* memory)
      : plan_(plan),
        arena_(memory),
        queries_(plan, dropout, TokenRole::query, arena_.take(MappedChunk<T>::scratch(plan))),
        keys_(plan, dropout, TokenRole::key, arena_.take(MappedChunk<T>::scratch(plan))) {
    const int64_t C = plan.chunk;
    for (T** pairs : {&weights_, &weight_grads_, &grads_transposed_}) *pairs = arena_.take(C * C);
    for (T** block : {&feature_grads_, &features_, &key_features_}) *block = arena_.take(plan.block_rows * C);
    for (T** rows : {&g_transposed_, &v1_transposed_}) *rows = arena_.take((plan.dv + 1) * C);
    for (T** rows : {&g_, &v_copy_, &dv_}) *rows = arena_.take(C * plan.padded_dv);
    for (T** rows : {&dq_, &dk_}) *rows = arena_.take(plan.d * C);
    dout_dot_out_ = arena_.take(C);
  }

  /// Prefetches the rows of a chunk.
  void prefetch(const PolynomialHead<T>& x, const PolynomialGradients<T>& grads, int64_t t,
                int64_t count) const {
    fetch_rows(x.q.row(t), x.q.ld, count, plan_.d);
    fetch_rows(x.k.row(t), x.k.ld, count, plan_.d);
    fetch_rows(x.v.row(t), x.v.ld, count, plan_.dv);
    fetch_rows(grads.dout.row(t), grads.dout.ld, count, plan_.dv);
    fetch_rows<T>(x.out + t * x.ld_out, x.ld_out, count, plan_.dv);
  }
  /// Loads queries [t, t + count) and computes their g, also transposed. Where the guard replaces the sum of
  /// weights, the sum gets no gradient.
  void load_queries(const PolynomialHead<T>& x, const PolynomialGradients<T>& grads, int64_t t,
                    int64_t count) {
    queries_.load(x.q.from(t), count, x.index, t);
    const Rows<T> dout = grads.dout.from(t);
    simd::row_dots(dout.data, dout.ld, x.out + t * x.ld_out, x.ld_out, count, plan_.dv, dout_dot_out_);
    std::fill_n(sum_grads(), plan_.chunk, T(0));
    for (int64_t i = 0; i < count; ++i) {
      const T sum = x.sums[t + i], inverse = inverse_weight_sum(plan_.params, sum);
      T* g_row = g_ + i * plan_.padded_dv;
      simd::scaled(dout.row(i), plan_.dv, inverse, g_row);
      std::fill(g_row + plan_.dv, g_row + plan_.padded_dv, T(0));
      const T guard = static_cast<T>(plan_.params.guard);
      const bool is_guarded = std::abs(sum + static_cast<T>(plan_.params.epsilon)) < guard;
      sum_grads()[i] = is_guarded ? T(0) : -dout_dot_out_[i] * inverse;
    }
    simd::scaled_transpose(g_, plan_.padded_dv, count, plan_.dv, T(1), g_transposed_, plan_.chunk);
  }
  /// Loads keys [t, t + visible) and their values, also transposed.
  void load_keys(const PolynomialHead<T>& x, int64_t t, int64_t visible) {
    keys_.load(x.k.from(t), visible, x.index, t);
    v_ = whole_rows(x.v.row(t), x.v.ld, visible, plan_.dv, v_copy_);
    simd::scaled_transpose(v_.data, v_.ld, visible, plan_.dv, T(1), v1_transposed_, plan_.chunk);
    fill_visible(keys_, visible_column());
  }
  void clear_dq() { std::fill_n(dq_, plan_.d * plan_.chunk, T(0)); }
  void clear_dk_dv() {
    std::fill_n(dk_, plan_.d * plan_.chunk, T(0));
    std::fill_n(dv_, plan_.chunk * plan_.padded_dv, T(0));
  }
  T* dq() { return dq_; }  ///< [d, chunk]: the gradients of the mapped queries

  /// dq += gradients through the features of the loaded queries, from the state over earlier keys.
  void add_query_grads(const T* key_state) {
    queries_.begin_features(dq_);
    for (const FeatureBlock& block : plan_.blocks) {
      make_feature_grads(block, key_state, g_transposed_, queries_.padded_count());
      queries_.backpropagate_features(block, feature_grads_, queries_.draw_mask(block));
    }
    queries_.finish_features();
  }
  /// add_query_grads(key_state) and add_queries(query_state) in one loop over features.
  void add_query_grads_and_queries(const T* key_state, T* query_state) {
    queries_.begin_features(dq_);
    for (const FeatureBlock& block : plan_.blocks) {
      const MonomialMask<T> mask = queries_.draw_mask(block);
      make_feature_grads(block, key_state, g_transposed_, queries_.padded_count());
      queries_.backpropagate_features(block, feature_grads_, mask);
      flops_ += add_to_state(plan_, block.count, queries_.make_features(block, features_, mask),
                             queries_.count(), g_rows(0), sum_grads(), plan_.rows_of(block, query_state));
    }
    queries_.finish_features();
  }
  void add_keys(T* key_state) {
    flops_ += add_to_state(plan_, keys_, v_, visible_column(), features_, key_state);
  }
  void add_queries(T* query_state) {
    flops_ += add_to_state(plan_, queries_, g_rows(0), sum_grads(), features_, query_state);
  }
  /// dk += gradients through the features of the loaded keys, and dv += features^T state, from the state over
  /// later queries.
  void add_key_grads(const T* query_state) {
    keys_.begin_features(dk_);
    for (const FeatureBlock& block : plan_.blocks) {
      const MonomialMask<T> mask = keys_.draw_mask(block);
      const T* features = keys_.make_features(block, key_features_, mask);
      make_feature_grads(block, query_state, v1_transposed_, keys_.padded_count());
      flops_ +=
          small_gemm(Left::transposed, keys_.count(), plan_.padded_dv, block.count, features, plan_.chunk,
                     plan_.rows_of(block, query_state), plan_.state_ld, dv_, plan_.padded_dv, /*add=*/true);
      keys_.backpropagate_features(block, feature_grads_, mask);
    }
    keys_.finish_features();
  }

  /// dq, dk and dv += the gradients of the pairs of the loaded queries and keys.
  void add_pair_grads(bool causal) {
    const PairMatrix<T> matrix{
        .plan = plan_, .causal = causal, .keys = keys_.count(), .queries = queries_.count()};
    T *scores = weights_, *weights = weights_;
    T *weight_grads = weight_grads_, *score_grads = weight_grads_;
    flops_ += matrix.product(keys_.variables(), queries_.variables(), plan_.d, scores);
    flops_ += matrix.product(v1_transposed_, g_transposed_, plan_.dv + 1, weight_grads);
    matrix.scores_to_weights(scores, weight_grads);
    flops_ += matrix.sum_columns_over_keys(keys_.variables(), plan_.d, score_grads, dq_);
    matrix.transpose(score_grads, grads_transposed_);
    flops_ += matrix.sum_columns_over_queries(queries_.variables(), plan_.d, grads_transposed_, dk_);
    flops_ += matrix.sum_over_queries(weights, g_rows(0), plan_.padded_dv, dv_);
  }
  /// With dropout of monomials: dq += gradients from the state over earlier keys and from the loaded keys,
  /// span by span. Adds the loaded keys to the state, those of the last span only if it is needed later.
  void add_query_grads_by_spans(const RunningState<T>& key_state) {
    const int64_t count = queries_.count(), visible = keys_.count();
    make_span_weight_grads();
    queries_.begin_features(dq_);
    keys_.begin_features(nullptr);
    for (const FeatureBlock& block : plan_.blocks) {
      const T* key_features = keys_.make_features(block, key_features_, keys_.draw_mask(block));
      StateBlock<T> state(plan_, block, key_state.state);
      each_span(plan_, count, visible, [&](const Span& span) {
        const int64_t s = span.first;
        make_span_feature_grads(block, state, key_state.is_nonzero || s > 0, g_transposed_ + s, span.queries,
                                feature_grads_ + s);
        if (span.keys == 0) return;
        flops_ += matrix_of(span).sum_columns_over_keys(key_features + s, block.count,
                                                        weight_grads_ + diagonal(s), feature_grads_ + s);
        if (key_state.is_needed_later || s + span.queries < count)
          flops_ += state.add(key_features + s, span.keys, v_.from(s), visible_column() + s);
      });
      queries_.backpropagate_features(block, feature_grads_, queries_.draw_mask(block));
    }
    queries_.finish_features();
  }
  /// With dropout of monomials: dk and dv += gradients from the state over later queries and from the loaded
  /// queries, from the last span to the first. Adds the loaded queries to the state, those of the first span
  /// only if it is needed later.
  void add_key_grads_by_spans(const RunningState<T>& query_state) {
    const int64_t count = queries_.count(), visible = keys_.count(), C = plan_.chunk;
    make_span_weight_grads();
    each_span(plan_, count, visible, [&](const Span& span) {
      const int64_t place = diagonal(span.first);
      matrix_of(span).transpose(weight_grads_ + place, grads_transposed_ + place);
    });
    std::fill_n(weights_, C * C, T(0));
    queries_.begin_features(nullptr);
    keys_.begin_features(dk_);
    for (const FeatureBlock& block : plan_.blocks) {
      const T* features = queries_.make_features(block, features_, queries_.draw_mask(block));
      const MonomialMask<T> mask = keys_.draw_mask(block);
      const T* key_features = keys_.make_features(block, key_features_, mask);
      StateBlock<T> state(plan_, block, query_state.state);
      for (int64_t s = (count - 1) / plan_.span * plan_.span; s >= 0; s -= plan_.span) {
        const Span span = span_at(plan_, s, count, visible);
        if (span.keys > 0) {
          const bool has_later_queries = query_state.is_nonzero || s + span.queries < count;
          make_span_feature_grads(block, state, has_later_queries, v1_transposed_ + s, span.keys,
                                  feature_grads_ + s);
          if (has_later_queries)
            flops_ += state.read(key_features + s, span.keys, dv_ + s * plan_.padded_dv, /*sums=*/nullptr);
          flops_ += matrix_of(span).sum_columns_over_queries(
              features + s, block.count, grads_transposed_ + diagonal(s), feature_grads_ + s);
          flops_ += matrix_of(span).product(key_features + s, features + s, block.count,
                                            weights_ + diagonal(s), /*add=*/true);
        }
        if (query_state.is_needed_later || s > 0)
          flops_ += state.add(features + s, span.queries, g_rows(s), sum_grads() + s);
      }
      keys_.backpropagate_features(block, feature_grads_, mask);
    }
    keys_.finish_features();
    each_span(plan_, count, visible, [&](const Span& span) {
      const int64_t s = span.first;
      matrix_of(span).mask_future(weights_ + diagonal(s));
      flops_ += matrix_of(span).sum_over_queries(weights_ + diagonal(s), g_rows(s), plan_.padded_dv,
                                                 dv_ + s * plan_.padded_dv);
    });
  }

  /// Saves dq of the mapped queries between two sweeps; load_mapped_dq() loads it.
  void save_mapped_dq(const PolynomialGradients<T>& grads, int64_t t) {
    queries_.store_tokens(dq_, grads.dq + t * grads.ld_dq, grads.ld_dq);
  }
  void load_mapped_dq(const PolynomialGradients<T>& grads, int64_t t) const {
    queries_.load_tokens(grads.dq + t * grads.ld_dq, grads.ld_dq, dq_);
  }
  /// Writes dq of the loaded queries from `mapped_dq` [d, chunk], the gradients of the mapped queries, which
  /// are overwritten.
  void store_dq(const PolynomialGradients<T>& grads, int64_t t, T* mapped_dq) {
    queries_.backpropagate_feature_map(mapped_dq);
    queries_.store_tokens(mapped_dq, grads.dq + t * grads.ld_dq, grads.ld_dq);
  }
  /// Writes dk and dv of `count` keys; keys from `visible` on get zeros.
  void store_dk_dv(const PolynomialGradients<T>& grads, int64_t t, int64_t count, int64_t visible) {
    if (visible > 0) {
      keys_.backpropagate_feature_map(dk_);
      keys_.store_tokens(dk_, grads.dk + t * grads.ld_dk, grads.ld_dk);
    }
    for (int64_t j = 0; j < visible; ++j)
      std::copy_n(dv_ + j * plan_.padded_dv, plan_.dv, grads.dv + (t + j) * grads.ld_dv);
    zero_rows(grads.dk + (t + visible) * grads.ld_dk, grads.ld_dk, count - visible, plan_.d);
    zero_rows(grads.dv + (t + visible) * grads.ld_dv, grads.ld_dv, count - visible, plan_.dv);
  }

  int64_t flops() const { return flops_; }

 private:
  PairMatrix<T> matrix_of(const Span& span) const {
    return {.plan = plan_, .causal = true, .keys = span.keys, .queries = span.queries};
  }
  /// Where the pairs of the span that begins at token s begin in a matrix of pairs.
  int64_t diagonal(int64_t s) const { return s * plan_.chunk + s; }
  /// The sum factors of queries and of keys, [chunk].
  T* sum_grads() const { return g_transposed_ + plan_.dv * plan_.chunk; }
  T* visible_column() const { return v1_transposed_ + plan_.dv * plan_.chunk; }
  Rows<T> g_rows(int64_t t) const { return {g_ + t * plan_.padded_dv, plan_.padded_dv}; }

  /// weight_grads_[j, i] = g_i . v1_j for the pairs within each span, zero where key j comes after query i.
  void make_span_weight_grads() {
    each_span(plan_, queries_.count(), keys_.count(), [&](const Span& span) {
      const int64_t s = span.first;
      flops_ += matrix_of(span).product(v1_transposed_ + s, g_transposed_ + s, plan_.dv + 1,
                                        weight_grads_ + diagonal(s));
      matrix_of(span).mask_future(weight_grads_ + diagonal(s));
    });
  }
  /// feature_grads_ [block.count, tokens] = state columns, for columns [dv + 1, tokens]: g or v1, transposed.
  void make_feature_grads(const FeatureBlock& block, const T* state, const T* columns,
                          int64_t padded_tokens) {
    flops_ +=
        small_gemm(Left::row_major, block.count, padded_tokens, plan_.dv + 1, plan_.rows_of(block, state),
                   plan_.state_ld, columns, plan_.chunk, feature_grads_, plan_.chunk, /*add=*/false);
  }
  /// The feature gradients of a span from the state: state columns, or zeros where the state is zero.
  void make_span_feature_grads(const FeatureBlock& block, const StateBlock<T>& state, bool is_nonzero,
                               const T* columns, int64_t tokens, T* feature_grads) {
    if (is_nonzero) {
      const T* sum_factors = columns + plan_.dv * plan_.chunk;
      flops_ += state.make_feature_grads(columns, sum_factors, tokens, feature_grads);
    } else {
      clear_block(plan_, block, simd::padded<T>(tokens), feature_grads);
    }
  }

  const PolynomialPlan<T>& plan_;
  BumpAllocator<T> arena_;
  MappedChunk<T> queries_, keys_;
  Rows<T> v_{nullptr, 0};                         // [keys, padded dv] of the loaded keys
  T* weights_;                                    // [chunk keys, chunk queries]: scores, then weights
  T* weight_grads_;                               // [chunk keys, chunk queries]: of weights, then of scores
  T* grads_transposed_;                           // [chunk queries, chunk keys]
  T *feature_grads_, *features_, *key_features_;  // [block_rows, chunk]
  T *g_transposed_, *v1_transposed_;              // [dv + 1, chunk]
  T *g_, *v_copy_, *dv_;                          // [chunk, padded dv]
  T *dq_, *dk_;                                   // [d, chunk]
  T* dout_dot_out_;                               // [chunk]
  int64_t flops_ = 0;
};

}  // namespace heed::kernel
