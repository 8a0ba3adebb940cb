// PolynomialAttention forward on the CPU, chunk by chunk: a running state of monomial sums covers the keys
// before the chunk, and the polynomial of the scores covers the keys within it. Few, long heads are split
// into segments whose states are summed first.
#include "heed/core/kernels/linear_attention/polynomial_attention.h"

#include "heed/core/kernels/linear_attention/polynomial_pair_matrix.h"
#include "heed/core/kernels/linear_attention/polynomial_state.h"
#include "heed/core/kernels/simd/simd.h"

namespace heed::kernel {
namespace {

/// Computes out and sums of chunks of queries.
template <class T>
class ForwardChunk {
 public:
  static int64_t scratch(const PolynomialPlan<T>& plan) {
    const int64_t C = plan.chunk;
    return 2 * BumpAllocator<T>::rounded(MappedChunk<T>::scratch(plan)) + C * C + 2 * plan.block_rows * C +
           2 * C * plan.padded_dv + 2 * C;
  }
  ForwardChunk(const PolynomialPlan<T>& plan, const PolynomialDropoutDraws<T>& dropout, T* memory)
      : plan_(plan),
        arena_(memory),
        queries_(plan, dropout, TokenRole::query, arena_.take(MappedChunk<T>::scratch(plan))),
        keys_(plan, dropout, TokenRole::key, arena_.take(MappedChunk<T>::scratch(plan))) {
    const int64_t C = plan.chunk;
    pairs_ = arena_.take(C * C);
    features_ = arena_.take(plan.block_rows * C);
    key_features_ = arena_.take(plan.block_rows * C);
    out_ = arena_.take(C * plan.padded_dv);
    v_copy_ = arena_.take(C * plan.padded_dv);
    sums_ = arena_.take(C);
    visible_ = arena_.take(C);
  }

  /// out of queries [t, t + count) from the running state and, in a causal call, from the `visible` visible
  /// keys of their own chunk, which are then added to the state if it is needed later.
  void attend(const PolynomialHead<T>& x, int64_t t, int64_t count, int64_t visible,
              const RunningState<T>& running) {
    load_queries(x, t, count);
    if (running.is_needed_later) {
      fetch_rows(x.q.row(t + count), x.q.ld, count, plan_.d);
      if (x.k.data != nullptr) fetch_rows(x.k.row(t + count), x.k.ld, count, plan_.d);
      if (x.k.data != nullptr) fetch_rows(x.v.row(t + count), x.v.ld, count, plan_.dv);
    }
    if (visible > 0) {
      load_keys(x, t, visible);
      fill_visible(keys_, visible_);
    }
    if (plan_.has_monomial_dropout()) {
      attend_by_spans(visible, running);
    } else {
      if (visible > 0) attend_pairs(/*causal=*/true);
      if (running.is_nonzero) read_state(running.state);
      if (visible > 0 && running.is_needed_later)
        flops_ += add_to_state(plan_, keys_, v_, visible_, features_, running.state);
    }
    store(x, t, count);
  }

  /// out of queries [t, t + count) from keys [0, visible), pair by pair.
  void attend_densely(const PolynomialHead<T>& x, int64_t t, int64_t count, int64_t visible) {
    load_queries(x, t, count);
    const bool causal = plan_.params.causal;
    for (int64_t j = 0; j < (causal ? std::min(visible, t + count) : visible); j += plan_.chunk) {
      const bool is_own_chunk = causal && j == t;
      load_keys(x, j, std::min({plan_.chunk, visible - j, is_own_chunk ? count : plan_.chunk}));
      attend_pairs(is_own_chunk);
    }
    store(x, t, count);
  }

  int64_t flops() const { return flops_; }

 private:
  void load_queries(const PolynomialHead<T>& x, int64_t t, int64_t count) {
    queries_.load(x.q.from(t), count, x.index, t);
    std::fill_n(sums_, queries_.padded_count(), T(0));
    std::fill_n(out_, count * plan_.padded_dv, T(0));
  }
  void load_keys(const PolynomialHead<T>& x, int64_t t, int64_t count) {
    keys_.load(x.k.from(t), count, x.index, t);
    v_ = whole_rows(x.v.row(t), x.v.ld, count, plan_.dv, v_copy_);
  }

  /// out_ += f(scores)^T v and sums_ += sums of f(scores) over keys, for scores [keys, queries].
  void attend_pairs(bool causal) {
    const PairMatrix<T> matrix{
        .plan = plan_, .causal = causal, .keys = keys_.count(), .queries = queries_.count()};
    T *scores = pairs_, *weights = pairs_;
    flops_ += matrix.product(keys_.variables(), queries_.variables(), plan_.d, scores);
    matrix.scores_to_weights(scores);
    matrix.add_sums(weights, sums_);
    flops_ += matrix.sum_over_keys(weights, v_, plan_.padded_dv, out_);
  }
  /// out_ [queries, dv] += features^T state and sums_ += features^T (sum column), a block of features at a
  /// time.
  void read_state(const T* state) {
    queries_.begin_features(nullptr);
    for (const FeatureBlock& block : plan_.blocks) {
      const T *rows = plan_.rows_of(block, state), *sum_column = rows + plan_.dv;
      const T* features = queries_.make_features(block, features_, queries_.draw_mask(block));
      flops_ += small_gemm(Left::transposed, queries_.count(), plan_.padded_dv, block.count, features,
                           plan_.chunk, rows, plan_.state_ld, out_, plan_.padded_dv, /*add=*/true);
      flops_ += small_gemm(Left::transposed, 1, queries_.padded_count(), block.count, sum_column,
                           plan_.state_ld, features, plan_.chunk, sums_, plan_.chunk, /*add=*/true);
    }
  }
  /// With dropout of monomials: out_ and sums_ from the state and from the loaded keys, span by span. Each
  /// span reads the state, to which its keys are then added. The weights of pairs within a span, (key
  /// features)^T (query features), are summed over the blocks of features before they meet v.
  void attend_by_spans(int64_t visible, const RunningState<T>& running) {
    const int64_t count = queries_.count(), C = plan_.chunk;
    const auto matrix_of = [&](const Span& span) {
      return PairMatrix<T>{.plan = plan_, .causal = true, .keys = span.keys, .queries = span.queries};
    };
    T* weights = pairs_;
    if (visible > 0) std::fill_n(weights, C * C, T(0));
    queries_.begin_features(nullptr);
    if (visible > 0) keys_.begin_features(nullptr);
    for (const FeatureBlock& block : plan_.blocks) {
      const T* features = queries_.make_features(block, features_, queries_.draw_mask(block));
      const T* key_features =
          visible > 0 ? keys_.make_features(block, key_features_, keys_.draw_mask(block)) : nullptr;
      StateBlock<T> state(plan_, block, running.state);
      each_span(plan_, count, visible, [&](const Span& span) {
        const int64_t s = span.first;
        if (running.is_nonzero || s > 0)
          flops_ += state.read(features + s, span.queries, out_ + s * plan_.padded_dv, sums_ + s);
        if (span.keys == 0) return;
        flops_ += matrix_of(span).product(key_features + s, features + s, block.count, weights + s * C + s,
                                          /*add=*/true);
        if (running.is_needed_later || s + span.queries < count)
          flops_ += state.add(key_features + s, span.keys, v_.from(s), visible_ + s);
      });
    }
    each_span(plan_, count, visible, [&](const Span& span) {
      const int64_t s = span.first;
      T* span_weights = weights + s * C + s;
      matrix_of(span).mask_future(span_weights);
      matrix_of(span).add_sums(span_weights, sums_ + s);
      flops_ += matrix_of(span).sum_over_keys(span_weights, v_.from(s), plan_.padded_dv,
                                              out_ + s * plan_.padded_dv);
    });
  }
  /// Divides the weighted sums of values of a chunk of queries by their sums of weights, and writes both.
  void store(const PolynomialHead<T>& x, int64_t t, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      simd::scaled(out_ + i * plan_.padded_dv, plan_.dv, inverse_weight_sum(plan_.params, sums_[i]),
                   x.out + (t + i) * x.ld_out);
      x.sums[t + i] = sums_[i];
    }
  }

  const PolynomialPlan<T>& plan_;
  BumpAllocator<T> arena_;
  MappedChunk<T> queries_, keys_;
  Rows<T> v_{nullptr, 0};        // [keys, padded dv] of the loaded keys
  T* pairs_;                     // [chunk keys, chunk queries]: scores, then weights
  T *features_, *key_features_;  // [block_rows, chunk]
  T *out_, *v_copy_;             // [chunk, padded dv]
  T *sums_, *visible_;           // [chunk]: sums of weights; sum factors of keys
  int64_t flops_ = 0;
};

/// out and sums through sums over monomials. One task is some segments of heads: each goes through its
/// queries chunk by chunk with a state [num_features, dv + 1] of the keys before. The states before segments
/// are computed first where there are several.
template <class T>
void factored(const PolynomialCall<T>& call) {
  const PolynomialPlan<T> plan(call.params, call.d, call.dv, /*factored=*/true, call.queries);
  const PolynomialDropoutDraws<T> dropout(plan, call);
  const int64_t heads = call.B * call.H, queries = call.queries;
  constexpr int64_t queries_per_segment = 1024;  // where there are no keys, so that segments are independent
  const int64_t segments =
      call.has_keys ? num_polynomial_segments(plan, heads, queries) : ceil_div(queries, queries_per_segment);
  const int64_t length = ceil_div(ceil_div(queries, plan.chunk), std::max<int64_t>(segments, 1)) * plan.chunk;
  Tensor prefixes;
  if (call.has_keys && segments > 1) prefixes = polynomial_prefixes(plan, dropout, call, segments, length);
  const int64_t chunk_scratch = ForwardChunk<T>::scratch(plan);
  Scratch scratch(static_cast<int64_t>(sizeof(T)) *
                  (chunk_scratch + BumpAllocator<T>::rounded(plan.state_size())));
  const int64_t grain = rows_per_task(2 * plan.pass_flops(std::min(length, queries)));
  parallel_rows(heads * segments, grain, [&](int64_t first_item, int64_t end_item) {
    const Scratch::Part part(scratch);
    ForwardChunk<T> chunk(plan, dropout, part.template data<T>());
    T* state = part.template data<T>() + chunk_scratch;
    // A segment of a head: the state before it, then its chunks in order.
    for (int64_t item = first_item; item < end_item; ++item) {
      const int64_t head = item / segments, segment = item % segments, begin = segment * length;
      const PolynomialHead<T> x = call.head(head);
      bool is_nonzero = call.start_of(head) != nullptr;
      if (prefixes && segment > 0) {
        std::copy_n(prefixes.data<T>() + item * plan.state_size(), plan.state_size(), state);
        is_nonzero = true;
      } else {
        load_polynomial_state(plan, call.start_of(head), state);
      }
      const int64_t end = std::min(begin + length, x.queries);
      for (int64_t t = begin; t < end; t += plan.chunk) {
        const int64_t count = std::min(plan.chunk, end - t);
        const int64_t visible = call.has_keys ? plan.visible_keys(call.lengths, x.batch, t, count) : 0;
        chunk.attend(x, t, count, visible,
                     {.state = state, .is_nonzero = is_nonzero, .is_needed_later = t + plan.chunk < end});
        is_nonzero = is_nonzero || visible > 0;
      }
    }
    Count::add(chunk.flops());
  });
}

/// out and sums pair by pair, for any degree. One task is some chunks of queries (b, h, chunk), each with all
/// keys that it sees.
template <class T>
void dense(const PolynomialCall<T>& call) {
  const PolynomialPlan<T> plan(call.params, call.d, call.dv, /*factored=*/false);
  const PolynomialDropoutDraws<T> dropout(plan, call);
  const int64_t chunks = ceil_div(call.queries, plan.chunk);
  Scratch scratch(static_cast<int64_t>(sizeof(T)) * ForwardChunk<T>::scratch(plan));
  const int64_t grain = rows_per_task(2 * plan.chunk * call.keys * (call.d + call.dv));
  parallel_rows(call.B * call.H * chunks, grain, [&](int64_t first_item, int64_t end_item) {
    const Scratch::Part part(scratch);
    ForwardChunk<T> chunk(plan, dropout, part.template data<T>());
    for (int64_t item = first_item; item < end_item; ++item) {
      const PolynomialHead<T> x = call.head(item / chunks);
      const int64_t t = item % chunks * plan.chunk;
      if (t < x.queries)
        chunk.attend_densely(x, t, std::min(plan.chunk, x.queries - t),
                             plan.visible_keys(call.lengths, x.batch, 0, x.keys));
    }
    Count::add(chunk.flops());
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
