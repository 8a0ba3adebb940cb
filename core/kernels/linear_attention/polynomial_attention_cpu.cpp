// PolynomialAttention forward on the CPU, chunk by chunk: a running state of monomial sums covers the keys
// before the chunk, and the polynomial of the scores covers the keys within it. Few, long heads are split
// into segments whose states are summed first.
#include "heed/core/kernels/linear_attention/polynomial_attention.h"

#include "heed/core/kernels/linear_attention/polynomial_dropout.h"
#include "heed/core/kernels/linear_attention/polynomial_map.h"
#include "heed/core/kernels/linear_attention/polynomial_span.h"
#include "heed/core/kernels/linear_attention/polynomial_state.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

/// Computes out and sums of chunks of queries.
template <class T>
class Forward {
 public:
  static int64_t scratch(const PolynomialPlan<T>& plan) {
    const int64_t C = plan.chunk;
    return 2 * BumpAllocator<T>::rounded(MappedChunk<T>::scratch(plan)) + C * C + 2 * plan.block_rows * C +
           2 * C * plan.padded_dv + 2 * C;
  }
  Forward(const PolynomialPlan<T>& plan, const PolynomialDropoutDraws<T>& dropout, T* memory)
      : plan_(plan),
        dropout_(dropout),
        query_masks_(plan, dropout),
        key_masks_(plan, dropout),
        arena_(memory),
        queries_(plan, dropout, true, arena_.take(MappedChunk<T>::scratch(plan))),
        keys_(plan, dropout, false, arena_.take(MappedChunk<T>::scratch(plan))) {
    const int64_t C = plan.chunk;
    map_ = arena_.take(C * C);
    features_ = arena_.take(plan.block_rows * C);
    key_features_ = arena_.take(plan.block_rows * C);
    out_ = arena_.take(C * plan.padded_dv);
    v_copy_ = arena_.take(C * plan.padded_dv);
    sums_ = arena_.take(C);
    ones_ = arena_.take(C);
  }

  /// out of queries [t, t + count) from the state of earlier keys and, in a causal call, from the `visible`
  /// visible keys of their own chunk, which are then added to the state if it is used later.
  void chunk(const PolynomialHead<T>& x, int64_t t, int64_t count, int64_t visible, T* state, bool has_state,
             bool needs_state) {
    queries_.load(x.q.from(t).data, x.q.ld, count, x.index, t);
    if (needs_state) {
      fetch_rows(x.q.from(t + count).data, x.q.ld, count, plan_.d);
      if (x.k.data != nullptr) fetch_rows(x.k.from(t + count).data, x.k.ld, count, plan_.d);
      if (x.k.data != nullptr) fetch_rows(x.v.from(t + count).data, x.v.ld, count, plan_.dv);
    }
    const int64_t width = queries_.width();
    std::fill_n(sums_, width, T(0));
    std::fill_n(out_, count * plan_.padded_dv, T(0));
    Rows<T> v{nullptr, 0};
    if (visible > 0) {
      keys_.load(x.k.from(t).data, x.k.ld, visible, x.index, t);
      v = whole_rows(x.v.from(t).data, x.v.ld, visible, plan_.dv, v_copy_);
      fill_ones_column(visible, keys_.width(), ones_);
    }
    if (dropout_.drops_monomials()) {
      chunk_by_spans(x.index, t, v, visible, state, has_state, needs_state);
      finish(x, t, count);
      return;
    }
    if (visible > 0) {
      const PolynomialMap<T> map{plan_, true, visible, count, width};
      flops_ += map.product(keys_.rows(), queries_.rows(), plan_.d, map_);
      map.scores_to_weights(map_);
      pairs(map, v);
    }
    if (has_state) {
      queries_.begin(nullptr);
      for (const FeatureBlock& block : plan_.blocks) {
        T* at = state + block.feature * plan_.ld;
        const T* phi = queries_.make(block, features_);
        flops_ += small_gemm(Left::transposed, count, plan_.padded_dv, block.count, phi, plan_.chunk, at,
                             plan_.ld, out_, plan_.padded_dv, true);
        flops_ += small_gemm(Left::transposed, 1, width, block.count, at + plan_.dv, plan_.ld, phi,
                             plan_.chunk, sums_, plan_.chunk, true);
      }
    }
    if (visible > 0 && needs_state) {
      flops_ +=
          add_polynomial_keys(plan_, dropout_, key_masks_, keys_, x.index, t, v, ones_, features_, state);
    }
    finish(x, t, count);
  }

  /// out of queries [t, t + count) from keys [0, visible), pair by pair.
  void dense(const PolynomialHead<T>& x, int64_t t, int64_t count, int64_t visible) {
    queries_.load(x.q.from(t).data, x.q.ld, count, x.index, t);
    const int64_t width = queries_.width();
    std::fill_n(sums_, width, T(0));
    std::fill_n(out_, count * plan_.padded_dv, T(0));
    const bool causal = plan_.params.causal;
    for (int64_t j = 0; j < (causal ? std::min(visible, t + count) : visible); j += plan_.chunk) {
      const int64_t keys = std::min({plan_.chunk, visible - j, causal && j == t ? count : plan_.chunk});
      keys_.load(x.k.from(j).data, x.k.ld, keys, x.index, j);
      const Rows<T> v = whole_rows(x.v.from(j).data, x.v.ld, keys, plan_.dv, v_copy_);
      const PolynomialMap<T> map{plan_, causal && j == t, keys, count, width};
      flops_ += map.product(keys_.rows(), queries_.rows(), plan_.d, map_);
      map.scores_to_weights(map_);
      pairs(map, v);
    }
    finish(x, t, count);
  }

  int64_t flops() const { return flops_; }

 private:
  /// chunk() for loaded tokens with dropout of monomials, span by span.
  void chunk_by_spans(int64_t head, int64_t t, Rows<T> v, int64_t visible, T* state, bool has_state,
                      bool needs_state) {
    const int64_t count = queries_.count(), C = plan_.chunk;
    const auto map = [&](int64_t tokens, int64_t keys) {
      return PolynomialMap<T>{plan_, true, keys, tokens, simd::padded<T>(tokens)};
    };
    if (visible > 0) std::fill_n(map_, C * C, T(0));
    queries_.begin(nullptr);
    if (visible > 0) keys_.begin(nullptr);
    for (const FeatureBlock& block : plan_.blocks) {
      const T* phi =
          queries_.make(block, features_, query_masks_.draw(block, dropout_.query_draw(head, t), count));
      const T* key_features = nullptr;
      if (visible > 0)
        key_features =
            keys_.make(block, key_features_, key_masks_.draw(block, dropout_.key_draw(head, t), visible));
      BlockState<T> part(plan_, block, state);
      each_span(plan_, count, visible, [&](int64_t s, int64_t tokens, int64_t keys) {
        if (has_state || s > 0) flops_ += part.read(phi + s, tokens, out_ + s * plan_.padded_dv, sums_ + s);
        if (keys == 0) return;
        flops_ += map(tokens, keys).product(key_features + s, phi + s, block.count, map_ + s * C + s, true);
        if (needs_state || s + tokens < count)
          flops_ += part.add(key_features + s, keys, v.from(s), ones_ + s);
      });
    }
    each_span(plan_, count, visible, [&](int64_t s, int64_t tokens, int64_t keys) {
      T* at = map_ + s * C + s;
      map(tokens, keys).mask_future(at);
      map(tokens, keys).add_sums(at, sums_ + s);
      flops_ += map(tokens, keys).gather(at, v.from(s), plan_.padded_dv, out_ + s * plan_.padded_dv);
    });
  }
  /// sums and out += the weights in map_, and their product with v.
  void pairs(const PolynomialMap<T>& map, Rows<T> v) {
    map.add_sums(map_, sums_);
    flops_ += map.gather(map_, v, plan_.padded_dv, out_);
  }
  /// Divides the sums of a chunk of queries by their sums of weights and writes both.
  void finish(const PolynomialHead<T>& x, int64_t t, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      simd::scaled(out_ + i * plan_.padded_dv, plan_.dv, inverse_weight_sum(plan_.params, sums_[i]),
                   x.out + (t + i) * x.ld_out);
      x.sums[t + i] = sums_[i];
    }
  }

  const PolynomialPlan<T>& plan_;
  const PolynomialDropoutDraws<T>& dropout_;
  MonomialMaskGenerator<T> query_masks_, key_masks_;
  BumpAllocator<T> arena_;
  MappedChunk<T> queries_, keys_;
  T *map_, *features_, *key_features_, *out_, *v_copy_, *sums_, *ones_;
  int64_t flops_ = 0;
};

/// out and sums through sums over monomials. One task is some segments of heads: each goes through its
/// queries chunk by chunk with a state [features, dv + 1] of the keys before. The states before segments are
/// computed first where there are several.
template <class T>
void factored(const PolynomialCall<T>& call) {
  const PolynomialPlan<T> plan(call.params, call.d, call.dv, true, call.queries);
  const PolynomialDropoutDraws<T> dropout(plan, call);
  const int64_t heads = call.B * call.H, T_q = call.queries;
  const int64_t segments = call.has_keys ? num_polynomial_segments(plan, heads, T_q) : ceil_div(T_q, 1024);
  const int64_t length = ceil_div(ceil_div(T_q, plan.chunk), std::max<int64_t>(segments, 1)) * plan.chunk;
  Tensor prefixes;
  if (call.has_keys && segments > 1) prefixes = polynomial_prefixes(plan, dropout, call, segments, length);
  Scratch scratch(static_cast<int64_t>(sizeof(T)) *
                  (Forward<T>::scratch(plan) + BumpAllocator<T>::rounded(plan.state())));
  const int64_t grain = rows_per_task(2 * plan.pass_flops(std::min(length, T_q)));
  parallel_rows(heads * segments, grain, [&](int64_t begin, int64_t end) {
    const Scratch::Part part(scratch);
    Forward<T> work(plan, dropout, part.template data<T>());
    T* state = part.template data<T>() + Forward<T>::scratch(plan);
    // A segment of a head: the state before it, then its chunks in order.
    for (int64_t at = begin; at < end; ++at) {
      const int64_t head = at / segments, segment = at % segments, first = segment * length;
      const PolynomialHead<T> x = call.head(head);
      const T* before = call.start_of(head);
      bool has_state = before != nullptr;
      if (prefixes && segment > 0) {
        std::copy_n(prefixes.data<T>() + at * plan.state(), plan.state(), state);
        has_state = true;
      } else {
        load_polynomial_state(plan, before, state);
      }
      const int64_t last = std::min(first + length, T_q);
      for (int64_t t = first; t < last; t += plan.chunk) {
        const int64_t count = std::min(plan.chunk, last - t);
        const int64_t visible = call.has_keys ? plan.visible_keys(call.lengths, x.batch, t, count) : 0;
        work.chunk(x, t, count, visible, state, has_state, t + plan.chunk < last);
        has_state = has_state || visible > 0;
      }
    }
    Count::add(work.flops());
  });
}

/// out and sums pair by pair, for any degree. One task is some chunks of queries (b, h, chunk), each with all
/// keys that it sees.
template <class T>
void dense(const PolynomialCall<T>& call) {
  const PolynomialPlan<T> plan(call.params, call.d, call.dv, false);
  const PolynomialDropoutDraws<T> dropout(plan, call);
  const int64_t tiles = ceil_div(call.queries, plan.chunk);
  Scratch scratch(static_cast<int64_t>(sizeof(T)) * Forward<T>::scratch(plan));
  const int64_t grain = rows_per_task(2 * plan.chunk * call.keys * (call.d + call.dv));
  parallel_rows(call.B * call.H * tiles, grain, [&](int64_t begin, int64_t end) {
    const Scratch::Part part(scratch);
    Forward<T> work(plan, dropout, part.template data<T>());
    for (int64_t at = begin; at < end; ++at) {
      const PolynomialHead<T> x = call.head(at / tiles);
      const int64_t t = at % tiles * plan.chunk;
      work.dense(x, t, std::min(plan.chunk, call.queries - t),
                 plan.visible_keys(call.lengths, x.batch, 0, call.keys));
    }
    Count::add(work.flops());
  });
}

}  // namespace

/// out and sums: pair by pair where that is cheaper, else through sums over monomials.
template <>
void PolynomialAttention::cpu<target_isa>(const PolynomialInputs& x, const PolynomialParams& params,
                                          const Tensor& out, const Tensor& sums) {
  visit_float("polynomial_attention", x.q.dtype(), [&]<class T>(Type<T>) {
    const PolynomialCall<T> call(x, params, out, sums);
    if (x.k && prefers_dense_polynomial(call.keys, call.d, params)) {
      dense<T>(call);
    } else {
      factored<T>(call);
    }
  });
}

}  // namespace heed::kernel
