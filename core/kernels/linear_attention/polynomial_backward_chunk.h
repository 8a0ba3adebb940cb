// The gradients of one chunk of queries and keys in PolynomialAttention.
#pragma once

#include "heed/core/kernels/linear_attention/polynomial_map.h"
#include "heed/core/kernels/linear_attention/polynomial_span.h"
#include "heed/core/kernels/linear_attention/polynomial_state.h"

namespace heed::kernel {

/// The gradients of a head: dout is read, the others are written. Row t begins t ld after the pointer.
template <class T>
struct PolynomialGradients {
  Rows<T> dout{nullptr, 0};
  T *dq = nullptr, *dk = nullptr, *dv = nullptr;
  int64_t ld_dq = 0, ld_dk = 0, ld_dv = 0;
};

/// With g_i = [dout_i, -dout_i . out_i] / sum_i and v1_j = [v_j, 1], the gradient of the weight of pair (i,
/// j) is g_i . v1_j. So a state S = sum over keys of phi(k_j) v1_j^T gives the gradients of a query's
/// features, S g_i, and a state R = sum over queries of phi(q_i) g_i^T those of a key's features, R v1_j.
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
        dropout_(dropout),
        query_masks_(plan, dropout),
        key_masks_(plan, dropout),
        arena_(memory),
        queries_(plan, dropout, true, arena_.take(MappedChunk<T>::scratch(plan))),
        keys_(plan, dropout, false, arena_.take(MappedChunk<T>::scratch(plan))) {
    const int64_t C = plan.chunk;
    weights_ = arena_.take(C * C);
    weight_grads_ = arena_.take(C * C);
    weight_grads_transposed_ = arena_.take(C * C);
    feature_grads_ = arena_.take(plan.block_rows * C);
    features_ = arena_.take(plan.block_rows * C);
    key_features_ = arena_.take(plan.block_rows * C);
    g_transposed_ = arena_.take((plan.dv + 1) * C);
    v_transposed_ = arena_.take((plan.dv + 1) * C);
    g_ = arena_.take(C * plan.padded_dv);
    v_copy_ = arena_.take(C * plan.padded_dv);
    dv_ = arena_.take(C * plan.padded_dv);
    dq_ = arena_.take(plan.d * C);
    dk_ = arena_.take(plan.d * C);
    dots_ = arena_.take(C);
  }

  /// Prefetches the rows of a chunk.
  void fetch(const PolynomialHead<T>& x, const PolynomialGradients<T>& to, int64_t t, int64_t count) const {
    fetch_rows(x.q.from(t).data, x.q.ld, count, plan_.d);
    fetch_rows(x.k.from(t).data, x.k.ld, count, plan_.d);
    fetch_rows(x.v.from(t).data, x.v.ld, count, plan_.dv);
    fetch_rows(to.dout.from(t).data, to.dout.ld, count, plan_.dv);
    fetch_rows<T>(x.out + t * x.ld_out, x.ld_out, count, plan_.dv);
  }
  /// Loads queries [t, t + count) and computes their g, also transposed.
  void load_queries(const PolynomialHead<T>& x, const PolynomialGradients<T>& to, int64_t t, int64_t count) {
    queries_.load(x.q.from(t).data, x.q.ld, count, x.index, t);
    const Rows<T> dout = to.dout.from(t);
    simd::row_dots(dout.data, dout.ld, x.out + t * x.ld_out, x.ld_out, count, plan_.dv, dots_);
    T* last = g_transposed_ + plan_.dv * plan_.chunk;
    std::fill_n(last, plan_.chunk, T(0));
    for (int64_t i = 0; i < count; ++i) {
      const T sum = x.sums[t + i], inverse = inverse_weight_sum(plan_.params, sum);
      T* row = g_ + i * plan_.padded_dv;
      simd::scaled(dout.data + i * dout.ld, plan_.dv, inverse, row);
      std::fill(row + plan_.dv, row + plan_.padded_dv, T(0));
      const T guard = static_cast<T>(plan_.params.guard);
      const bool is_guarded = std::abs(sum + static_cast<T>(plan_.params.epsilon)) < guard;
      last[i] = is_guarded ? T(0) : -dots_[i] * inverse;
    }
    simd::scaled_transpose(g_, plan_.padded_dv, count, plan_.dv, T(1), g_transposed_, plan_.chunk);
  }
  /// Loads keys [t, t + visible) and their values, also transposed.
  void load_keys(const PolynomialHead<T>& x, int64_t t, int64_t visible) {
    keys_.load(x.k.from(t).data, x.k.ld, visible, x.index, t);
    v_ = whole_rows(x.v.from(t).data, x.v.ld, visible, plan_.dv, v_copy_);
    simd::scaled_transpose(v_.data, v_.ld, visible, plan_.dv, T(1), v_transposed_, plan_.chunk);
    fill_ones_column(visible, keys_.width(), v_transposed_ + plan_.dv * plan_.chunk);
  }
  void clear_dq() { std::fill_n(dq_, plan_.d * plan_.chunk, T(0)); }
  void clear_keys() {
    std::fill_n(dk_, plan_.d * plan_.chunk, T(0));
    std::fill_n(dv_, plan_.chunk * plan_.padded_dv, T(0));
  }
  T* dq() { return dq_; }

  /// dq of the loaded queries += their gradients from `state`, the sum over earlier keys.
  void query_gradients_from(const T* state, int64_t head, int64_t t) {
    queries_.begin(dq_);
    for (const FeatureBlock& block : plan_.blocks) {
      flops_ += small_gemm(Left::row_major, block.count, queries_.width(), plan_.dv + 1,
                           state + block.feature * plan_.ld, plan_.ld, g_transposed_, plan_.chunk,
                           feature_grads_, plan_.chunk, false);
      queries_.backpropagate(block, feature_grads_, dq_,
                             query_masks_.draw(block, dropout_.query_draw(head, t), queries_.count()));
    }
    queries_.finish();
  }
  /// query_gradients_from(from) and add_queries(to) in one loop over features.
  void query_gradients_and_sums(const T* from, T* to, int64_t head, int64_t t) {
    queries_.begin(dq_);
    for (const FeatureBlock& block : plan_.blocks) {
      const MonomialMask<T> mask = query_masks_.draw(block, dropout_.query_draw(head, t), queries_.count());
      flops_ += small_gemm(Left::row_major, block.count, queries_.width(), plan_.dv + 1,
                           from + block.feature * plan_.ld, plan_.ld, g_transposed_, plan_.chunk,
                           feature_grads_, plan_.chunk, false);
      queries_.backpropagate(block, feature_grads_, dq_, mask);
      add_query_block(block, queries_.make(block, features_, mask), to);
    }
    queries_.finish();
  }
  /// Adds loaded keys to a state over keys.
  void add_keys(int64_t head, int64_t t, T* state) {
    flops_ += add_polynomial_keys(plan_, dropout_, key_masks_, keys_, head, t, v_,
                                  v_transposed_ + plan_.dv * plan_.chunk, features_, state);
  }
  /// Adds loaded queries to a state over queries.
  void add_queries(int64_t head, int64_t t, T* state) {
    queries_.begin(nullptr);
    for (const FeatureBlock& block : plan_.blocks) {
      const MonomialMask<T> mask = query_masks_.draw(block, dropout_.query_draw(head, t), queries_.count());
      add_query_block(block, queries_.make(block, features_, mask), state);
    }
  }
  /// dk and dv of the loaded keys += their gradients from `state`, the sum over later queries.
  void key_gradients_from(const T* state, int64_t head, int64_t t) {
    keys_.begin(dk_);
    for (const FeatureBlock& block : plan_.blocks) {
      const MonomialMask<T> mask = key_masks_.draw(block, dropout_.key_draw(head, t), keys_.count());
      key_block_grads(block, keys_.make(block, key_features_, mask), state);
      keys_.backpropagate(block, feature_grads_, dk_, mask);
    }
    keys_.finish();
  }

  /// dq, dk and dv += the gradients of the pairs of the loaded queries and keys.
  void pairs(bool triangle) {
    const PolynomialMap<T> map = this->map(triangle);
    flops_ += map.product(keys_.rows(), queries_.rows(), plan_.d, weights_);
    flops_ += map.product(v_transposed_, g_transposed_, plan_.dv + 1, weight_grads_);
    map.scores_to_weights(weights_, weight_grads_);
    flops_ += map.gather_transposed(keys_.rows(), plan_.d, weight_grads_, dq_);
    map.transpose(weight_grads_, weight_grads_transposed_);
    flops_ += map.scatter_transposed(queries_.rows(), plan_.d, weight_grads_transposed_, dk_);
    flops_ += map.scatter(weights_, {g_, plan_.padded_dv}, plan_.padded_dv, dv_);
  }
  /// With dropout of monomials: dq of the loaded queries += their gradients from the state over earlier keys
  /// and from the loaded keys, span by span. Adds the loaded keys to the state, those of the last span only
  /// if the state is used later.
  void query_gradients_by_spans(int64_t head, int64_t t, T* state, bool has_state, bool needs_state) {
    const int64_t count = queries_.count(), visible = keys_.count(), C = plan_.chunk;
    const T *g_last = g_transposed_ + plan_.dv * C, *ones = v_transposed_ + plan_.dv * C;
    span_weight_grads();
    queries_.begin(dq_);
    keys_.begin(nullptr);
    for (const FeatureBlock& block : plan_.blocks) {
      const T* phi =
          keys_.make(block, key_features_, key_masks_.draw(block, dropout_.key_draw(head, t), visible));
      BlockState<T> part(plan_, block, state);
      each_span(plan_, count, visible, [&](int64_t s, int64_t tokens, int64_t keys) {
        T* grads = feature_grads_ + s;
        if (has_state || s > 0) {
          flops_ += part.grads(g_transposed_ + s, g_last + s, tokens, grads);
        } else {
          clear_block(plan_, block, simd::padded<T>(tokens), grads);
        }
        if (keys == 0) return;
        flops_ +=
            map_of(tokens, keys).gather_transposed(phi + s, block.count, weight_grads_ + s * C + s, grads);
        if (needs_state || s + tokens < count) flops_ += part.add(phi + s, keys, v_.from(s), ones + s);
      });
      queries_.backpropagate(block, feature_grads_, dq_,
                             query_masks_.draw(block, dropout_.query_draw(head, t), count));
    }
    queries_.finish();
  }
  /// With dropout of monomials: dk and dv of the loaded keys += their gradients from the state over later
  /// queries and from the loaded queries, from the last span to the first. Adds the loaded queries to the
  /// state.
  void key_gradients_by_spans(int64_t head, int64_t t, T* state, bool has_state, bool needs_state) {
    const int64_t count = queries_.count(), visible = keys_.count(), C = plan_.chunk;
    const T *g_last = g_transposed_ + plan_.dv * C, *ones = v_transposed_ + plan_.dv * C;
    span_weight_grads();
    each_span(plan_, count, visible, [&](int64_t s, int64_t tokens, int64_t keys) {
      map_of(tokens, keys).transpose(weight_grads_ + s * C + s, weight_grads_transposed_ + s * C + s);
    });
    std::fill_n(weights_, C * C, T(0));
    queries_.begin(nullptr);
    keys_.begin(dk_);
    for (const FeatureBlock& block : plan_.blocks) {
      const T* phi =
          queries_.make(block, features_, query_masks_.draw(block, dropout_.query_draw(head, t), count));
      const MonomialMask<T> mask = key_masks_.draw(block, dropout_.key_draw(head, t), visible);
      const T* key_features = keys_.make(block, key_features_, mask);
      BlockState<T> part(plan_, block, state);
      for (int64_t s = (count - 1) / plan_.span * plan_.span; s >= 0; s -= plan_.span) {
        const int64_t tokens = std::min(plan_.span, count - s);
        const int64_t keys = std::clamp<int64_t>(visible - s, 0, tokens);
        if (keys > 0) {
          T* grads = feature_grads_ + s;
          if (has_state || s + tokens < count) {
            flops_ += part.grads(v_transposed_ + s, ones + s, keys, grads);
            flops_ += part.read(key_features + s, keys, dv_ + s * plan_.padded_dv, nullptr);
          } else {
            clear_block(plan_, block, simd::padded<T>(keys), grads);
          }
          flops_ +=
              map_of(tokens, keys)
                  .scatter_transposed(phi + s, block.count, weight_grads_transposed_ + s * C + s, grads);
          flops_ += map_of(tokens, keys)
                        .product(key_features + s, phi + s, block.count, weights_ + s * C + s, true);
        }
        if (needs_state || s > 0)
          flops_ += part.add(phi + s, tokens, {g_ + s * plan_.padded_dv, plan_.padded_dv}, g_last + s);
      }
      keys_.backpropagate(block, feature_grads_, dk_, mask);
    }
    keys_.finish();
    each_span(plan_, count, visible, [&](int64_t s, int64_t tokens, int64_t keys) {
      map_of(tokens, keys).mask_future(weights_ + s * C + s);
      flops_ += map_of(tokens, keys)
                    .scatter(weights_ + s * C + s, {g_ + s * plan_.padded_dv, plan_.padded_dv},
                             plan_.padded_dv, dv_ + s * plan_.padded_dv);
    });
  }

  /// Saves dq of mapped queries between the two sweeps; load_dq() loads it.
  void save_dq(const PolynomialGradients<T>& to, int64_t t) {
    queries_.store_tokens(dq_, to.dq + t * to.ld_dq, to.ld_dq);
  }
  void load_dq(const PolynomialGradients<T>& to, int64_t t) const {
    queries_.load_tokens(to.dq + t * to.ld_dq, to.ld_dq, dq_);
  }
  void finish_dq(const PolynomialGradients<T>& to, int64_t t, T* rows) {
    queries_.unmap(rows);
    queries_.store_tokens(rows, to.dq + t * to.ld_dq, to.ld_dq);
  }
  /// Writes dk and dv of `count` keys; keys from `visible` on get zeros.
  void finish_keys(const PolynomialGradients<T>& to, int64_t t, int64_t count, int64_t visible) {
    if (visible > 0) {
      keys_.unmap(dk_);
      keys_.store_tokens(dk_, to.dk + t * to.ld_dk, to.ld_dk);
    }
    for (int64_t j = 0; j < visible; ++j)
      std::copy_n(dv_ + j * plan_.padded_dv, plan_.dv, to.dv + (t + j) * to.ld_dv);
    zero_rows(to.dk + (t + visible) * to.ld_dk, to.ld_dk, count - visible, plan_.d);
    zero_rows(to.dv + (t + visible) * to.ld_dv, to.ld_dv, count - visible, plan_.dv);
  }

  int64_t flops() const { return flops_; }

 private:
  PolynomialMap<T> map(bool triangle) const {
    return {plan_, triangle, keys_.count(), queries_.count(), queries_.width()};
  }
  PolynomialMap<T> map_of(int64_t tokens, int64_t keys) const {
    return {plan_, true, keys, tokens, simd::padded<T>(tokens)};
  }
  /// weight_grads_[j, i] = g_i . v1_j for the pairs within each span, zero where key j comes after query i.
  void span_weight_grads() {
    const int64_t C = plan_.chunk;
    each_span(plan_, queries_.count(), keys_.count(), [&](int64_t s, int64_t tokens, int64_t keys) {
      flops_ += map_of(tokens, keys)
                    .product(v_transposed_ + s, g_transposed_ + s, plan_.dv + 1, weight_grads_ + s * C + s);
      map_of(tokens, keys).mask_future(weight_grads_ + s * C + s);
    });
  }
  /// state [block, dv + 1] += phi g, for the features phi [block, queries] of the loaded queries.
  void add_query_block(const FeatureBlock& block, const T* phi, T* state) {
    T* at = state + block.feature * plan_.ld;
    flops_ += small_gemm(Left::row_major, block.count, plan_.padded_dv, queries_.count(), phi, plan_.chunk,
                         g_, plan_.padded_dv, at, plan_.ld, true);
    add_ones_column(phi, block.count, plan_.chunk, queries_.width(), g_transposed_ + plan_.dv * plan_.chunk,
                    at + plan_.dv, plan_.ld);
    flops_ += 2 * block.count * queries_.width();
  }
  /// feature_grads_ [block, keys] = state v1^T, and dv [keys, dv] += phi^T state, for the features phi
  /// [block, keys].
  void key_block_grads(const FeatureBlock& block, const T* phi, const T* state) {
    const T* at = state + block.feature * plan_.ld;
    flops_ += small_gemm(Left::row_major, block.count, keys_.width(), plan_.dv + 1, at, plan_.ld,
                         v_transposed_, plan_.chunk, feature_grads_, plan_.chunk, false);
    flops_ += small_gemm(Left::transposed, keys_.count(), plan_.padded_dv, block.count, phi, plan_.chunk, at,
                         plan_.ld, dv_, plan_.padded_dv, true);
  }

  const PolynomialPlan<T>& plan_;
  const PolynomialDropoutDraws<T>& dropout_;
  MonomialMaskGenerator<T> query_masks_, key_masks_;
  BumpAllocator<T> arena_;
  MappedChunk<T> queries_, keys_;
  Rows<T> v_{nullptr, 0};
  T *weights_, *weight_grads_, *weight_grads_transposed_, *feature_grads_, *features_, *key_features_,
      *g_transposed_, *v_transposed_, *g_, *v_copy_, *dv_, *dq_, *dk_, *dots_;
  int64_t flops_ = 0;
};

}  // namespace heed::kernel
