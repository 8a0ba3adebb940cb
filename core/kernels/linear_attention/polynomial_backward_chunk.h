// The gradients of one chunk of queries and keys in Fastmax.
#pragma once

#include "core/kernels/fastmax_map.h"
#include "core/kernels/fastmax_state.h"

namespace heed::kernel {

/// Where the gradients of a head go. Rows are at t ld.
template <class T>
struct FastmaxSlopes {
  Rows<T> dout{nullptr, 0};
  T *dq = nullptr, *dk = nullptr, *dv = nullptr;
  int64_t ld_dq = 0, ld_dk = 0, ld_dv = 0;
};

/// With g~_i = [dout_i, -dout_i . out_i] / sum_i and v~_j = [v_j, 1] the gradient of the weight of a pair is
/// g~_i . v~_j; so a state S over keys gives those of a query's features, S g~_i, and a state R = sum
/// phi(q_i) g~_i^T over queries those of a key's, R v~_j.
template <class T>
class FastmaxBackChunk {
 public:
  static int64_t scratch(const FastmaxPlan<T>& plan) {
    const int64_t C = plan.chunk;
    return 2 * Carve<T>::rounded(FastmaxSide<T>::scratch(plan)) + 3 * C * C + 3 * plan.block_rows * C +
           2 * Carve<T>::rounded((plan.dv + 1) * C) + 3 * C * plan.wide + 2 * Carve<T>::rounded(plan.d * C) +
           C;
  }
  FastmaxBackChunk(const FastmaxPlan<T>& plan, const FastmaxDrop<T>& drop, T* memory)
      : plan_(plan),
        drop_(drop),
        carve_(memory),
        queries_(plan, true, carve_.take(FastmaxSide<T>::scratch(plan))),
        keys_(plan, false, carve_.take(FastmaxSide<T>::scratch(plan))) {
    const int64_t C = plan.chunk;
    weights_ = carve_.take(C * C);
    slopes_ = carve_.take(C * C);
    turned_ = carve_.take(C * C);
    pulled_ = carve_.take(plan.block_rows * C);
    room_ = carve_.take(plan.block_rows * C);
    other_room_ = carve_.take(plan.block_rows * C);
    turned_g_ = carve_.take((plan.dv + 1) * C);
    turned_v_ = carve_.take((plan.dv + 1) * C);
    g_ = carve_.take(C * plan.wide);
    v_copy_ = carve_.take(C * plan.wide);
    dv_ = carve_.take(C * plan.wide);
    dq_ = carve_.take(plan.d * C);
    dk_ = carve_.take(plan.d * C);
    dots_ = carve_.take(C);
  }

  /// Asks for what a chunk will read.
  void fetch(const FastmaxHead<T>& x, const FastmaxSlopes<T>& to, int64_t t, int64_t count) const {
    fetch_rows(x.q.from(t).data, x.q.ld, count, plan_.d);
    fetch_rows(x.k.from(t).data, x.k.ld, count, plan_.d);
    fetch_rows(x.v.from(t).data, x.v.ld, count, plan_.dv);
    fetch_rows(to.dout.from(t).data, to.dout.ld, count, plan_.dv);
    fetch_rows<T>(x.out + t * x.ld_out, x.ld_out, count, plan_.dv);
  }
  void load_queries(const FastmaxHead<T>& x, const FastmaxSlopes<T>& to, int64_t t, int64_t count) {
    queries_.load(x.q.from(t).data, x.q.ld, count);
    const Rows<T> dout = to.dout.from(t);
    simd::row_dots(dout.data, dout.ld, x.out + t * x.ld_out, x.ld_out, count, plan_.dv, dots_);
    T* last = turned_g_ + plan_.dv * plan_.chunk;
    std::fill_n(last, plan_.chunk, T(0));
    for (int64_t i = 0; i < count; ++i) {
      const T sum = x.sums[t + i], inverse = fastmax_inverse(plan_.terms, sum);
      T* row = g_ + i * plan_.wide;
      simd::scaled(dout.data + i * dout.ld, plan_.dv, inverse, row);
      std::fill(row + plan_.dv, row + plan_.wide, T(0));
      const T guard = static_cast<T>(plan_.terms.guard);
      const bool held = std::abs(sum + static_cast<T>(plan_.terms.epsilon)) < guard;
      last[i] = held ? T(0) : -dots_[i] * inverse;
    }
    simd::turn(g_, plan_.wide, count, plan_.dv, T(1), turned_g_, plan_.chunk);
  }
  void load_keys(const FastmaxHead<T>& x, int64_t t, int64_t seen) {
    keys_.load(x.k.from(t).data, x.k.ld, seen);
    v_ = whole_rows(x.v.from(t).data, x.v.ld, seen, plan_.dv, v_copy_);
    simd::turn(v_.data, v_.ld, seen, plan_.dv, T(1), turned_v_, plan_.chunk);
    fill_fastmax_ones(seen, keys_.width(), turned_v_ + plan_.dv * plan_.chunk);
  }
  void clear_dq() { std::fill_n(dq_, plan_.d * plan_.chunk, T(0)); }
  void clear_keys() {
    std::fill_n(dk_, plan_.d * plan_.chunk, T(0));
    std::fill_n(dv_, plan_.chunk * plan_.wide, T(0));
  }
  T* dq() { return dq_; }

  /// dq of loaded queries from a state over keys.
  void queries_from(const T* state, int64_t head, int64_t t) {
    queries_.begin(dq_);
    for (const FeatureBlock& block : plan_.blocks) {
      flops_ += small_gemm(Left::straight, block.count, queries_.width(), plan_.dv + 1,
                           state + block.feature * plan_.ld, plan_.ld, turned_g_, plan_.chunk, pulled_,
                           plan_.chunk, false);
      if (drop_) drop_.apply(block, drop_.query(head, t), queries_.count(), pulled_, pulled_);
      queries_.pull(block, pulled_, dq_);
    }
    queries_.finish();
  }
  /// Adds loaded keys to a state over keys.
  void add_keys(int64_t head, int64_t t, T* state) {
    flops_ +=
        add_fastmax_keys(plan_, drop_, keys_, head, t, v_, turned_v_ + plan_.dv * plan_.chunk, room_, state);
  }
  /// Adds loaded queries to a state over queries.
  void add_queries(int64_t head, int64_t t, T* state) {
    queries_.begin(nullptr);
    for (const FeatureBlock& block : plan_.blocks) {
      const T* phi = queries_.make(block, room_);
      if (drop_) phi = drop_.apply(block, drop_.query(head, t), queries_.count(), phi, room_);
      add_query_block(block, phi, state);
    }
  }
  /// dk and dv of loaded keys from a state over queries.
  void keys_from(const T* state, int64_t head, int64_t t) {
    keys_.begin(dk_);
    for (const FeatureBlock& block : plan_.blocks) {
      const T* phi = keys_.make(block, other_room_);
      if (drop_) phi = drop_.apply(block, drop_.key(head, t), keys_.count(), phi, other_room_);
      pull_key_block(block, phi, state, false);
      if (drop_) drop_.apply(block, drop_.key(head, t), keys_.count(), pulled_, pulled_);
      keys_.pull(block, pulled_, dk_);
    }
    keys_.finish();
  }

  /// What loaded queries and keys of one chunk mean to each other.
  void pairs(bool triangle) {
    const FastmaxMap<T> map = this->map(triangle);
    flops_ += map.product(keys_.rows(), queries_.rows(), plan_.d, weights_);
    flops_ += map.product(turned_v_, turned_g_, plan_.dv + 1, slopes_);
    map.weigh(weights_, slopes_);
    flops_ += map.gather_turned(keys_.rows(), plan_.d, slopes_, dq_);
    map.turn(slopes_, turned_);
    flops_ += map.spread_turned(queries_.rows(), plan_.d, turned_, dk_);
    flops_ += map.spread(weights_, {g_, plan_.wide}, plan_.wide, dv_);
  }
  /// The same and both states' parts where monomials are dropped, which scores do not know: through features.
  void dropped_pairs(int64_t head, int64_t t, T* state) {
    const FastmaxMap<T> map = this->map(true);
    flops_ += map.product(turned_v_, turned_g_, plan_.dv + 1, slopes_);
    map.cut(slopes_);
    map.turn(slopes_, turned_);
    std::fill_n(weights_, plan_.chunk * plan_.chunk, T(0));
    queries_.begin(dq_);
    keys_.begin(dk_);
    const uint64_t query = drop_.query(head, t), key = drop_.key(head, t);
    for (const FeatureBlock& block : plan_.blocks) {
      const T* of_queries = drop_.apply(block, query, queries_.count(), queries_.make(block, room_), room_);
      const T* of_keys = drop_.apply(block, key, keys_.count(), keys_.make(block, other_room_), other_room_);
      flops_ += small_gemm(Left::turned, keys_.count(), queries_.width(), block.count, of_keys, plan_.chunk,
                           of_queries, plan_.chunk, weights_, plan_.chunk, true);
      flops_ += small_gemm(Left::straight, block.count, keys_.width(), queries_.count(), of_queries,
                           plan_.chunk, turned_, plan_.chunk, pulled_, plan_.chunk, false);
      pull_key_block(block, of_keys, state, true);
      drop_.apply(block, key, keys_.count(), pulled_, pulled_);
      keys_.pull(block, pulled_, dk_);
      flops_ += small_gemm(Left::straight, block.count, queries_.width(), keys_.count(), of_keys, plan_.chunk,
                           slopes_, plan_.chunk, pulled_, plan_.chunk, false);
      drop_.apply(block, query, queries_.count(), pulled_, pulled_);
      queries_.pull(block, pulled_, dq_);
    }
    queries_.finish();
    keys_.finish();
    map.cut(weights_);
    flops_ += map.spread(weights_, {g_, plan_.wide}, plan_.wide, dv_);
  }

  /// dq so far to memory, and back, before it is finished.
  void keep_dq(const FastmaxSlopes<T>& to, int64_t t) {
    queries_.store_raw(dq_, to.dq + t * to.ld_dq, to.ld_dq);
  }
  void resume_dq(const FastmaxSlopes<T>& to, int64_t t) const {
    queries_.load_raw(to.dq + t * to.ld_dq, to.ld_dq, dq_);
  }
  void finish_dq(const FastmaxSlopes<T>& to, int64_t t, T* rows) {
    queries_.unprepare(rows);
    queries_.store_raw(rows, to.dq + t * to.ld_dq, to.ld_dq);
  }
  /// Keys past those that were seen get nothing.
  void finish_keys(const FastmaxSlopes<T>& to, int64_t t, int64_t count, int64_t seen) {
    if (seen > 0) {
      keys_.unprepare(dk_);
      keys_.store_raw(dk_, to.dk + t * to.ld_dk, to.ld_dk);
    }
    for (int64_t j = 0; j < seen; ++j)
      std::copy_n(dv_ + j * plan_.wide, plan_.dv, to.dv + (t + j) * to.ld_dv);
    zero_rows(to.dk + (t + seen) * to.ld_dk, to.ld_dk, count - seen, plan_.d);
    zero_rows(to.dv + (t + seen) * to.ld_dv, to.ld_dv, count - seen, plan_.dv);
  }

  int64_t flops() const { return flops_; }

 private:
  FastmaxMap<T> map(bool triangle) const {
    return {plan_, triangle, keys_.count(), queries_.count(), queries_.width()};
  }
  void add_query_block(const FeatureBlock& block, const T* phi, T* state) {
    T* at = state + block.feature * plan_.ld;
    flops_ += small_gemm(Left::straight, block.count, plan_.wide, queries_.count(), phi, plan_.chunk, g_,
                         plan_.wide, at, plan_.ld, true);
    add_fastmax_last(phi, block.count, plan_.chunk, queries_.width(), turned_g_ + plan_.dv * plan_.chunk,
                     at + plan_.dv, plan_.ld);
    flops_ += 2 * block.count * queries_.width();
  }
  void pull_key_block(const FeatureBlock& block, const T* phi, const T* state, bool add) {
    const T* at = state + block.feature * plan_.ld;
    flops_ += small_gemm(Left::straight, block.count, keys_.width(), plan_.dv + 1, at, plan_.ld, turned_v_,
                         plan_.chunk, pulled_, plan_.chunk, add);
    flops_ += small_gemm(Left::turned, keys_.count(), plan_.wide, block.count, phi, plan_.chunk, at, plan_.ld,
                         dv_, plan_.wide, true);
  }

  const FastmaxPlan<T>& plan_;
  const FastmaxDrop<T>& drop_;
  Carve<T> carve_;
  FastmaxSide<T> queries_, keys_;
  Rows<T> v_{nullptr, 0};
  T *weights_, *slopes_, *turned_, *pulled_, *room_, *other_room_, *turned_g_, *turned_v_, *g_, *v_copy_,
      *dv_, *dq_, *dk_, *dots_;
  int64_t flops_ = 0;
};

}  // namespace heed::kernel
