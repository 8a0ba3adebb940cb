// PolynomialAttention backward on the CPU: a sweep from the left with the state over keys gives dq, and a
// sweep from the right with the state over queries gives dk, dv and the rest of dq.
#include "heed/core/kernels/linear_attention/polynomial_backward.h"

#include "heed/core/kernels/linear_attention/polynomial_backward_chunk.h"
#include "heed/core/kernels/simd/simd.h"

namespace heed::kernel {
namespace {

/// The gradient tensors of a call.
template <class T>
struct GradientTensors {
  HeadView<T> dout, dq, dk, dv;
  PolynomialGradients<T> head(int64_t b, int64_t h) const {
    return {.dout = {dout.at(b, h, 0), dout.ld},
            .dq = dq.at(b, h, 0),
            .dk = dk.at(b, h, 0),
            .dv = dv.at(b, h, 0),
            .ld_dq = dq.ld,
            .ld_dk = dk.ld,
            .ld_dv = dv.ld};
  }
};

/// Bytes of so many numbers.
template <class T>
int64_t bytes(int64_t numbers) {
  return static_cast<int64_t>(sizeof(T)) * numbers;
}

/// dq, dk, dv and dstart of causal calls through sums over monomials. One task is some segments of heads,
/// each swept chunk by chunk forward and then backward.
template <class T>
class FactoredBackward {
 public:
  FactoredBackward(const PolynomialCall<T>& call, const GradientTensors<T>& grads, const Tensor& dstart)
      : call_(call),
        grads_(grads),
        dstart_(dstart),
        plan_(call.params, call.d, call.dv, /*factored=*/true, call.queries),
        dropout_(plan_, call),
        heads_(call.B * call.H),
        segments_(num_polynomial_segments(plan_, heads_, call.queries)),
        length_(ceil_div(ceil_div(call.queries, plan_.chunk), segments_) * plan_.chunk) {}

  void run() {
    const int64_t size = plan_.state_size(), chunk_scratch = PolynomialBackChunk<T>::scratch(plan_);
    Scratch scratch(bytes<T>(chunk_scratch + 2 * BumpAllocator<T>::rounded(size)));
    Tensor key_states, query_states;
    if (segments_ > 1) {
      key_states = polynomial_prefixes(plan_, dropout_, call_, segments_, length_);
      query_states = query_states_after(scratch);
    }
    const int64_t grain = rows_per_task(5 * plan_.pass_flops(std::min(length_, call_.queries)));
    parallel_rows(heads_ * segments_, grain, [&](int64_t first_item, int64_t end_item) {
      const Scratch::Part part(scratch);
      T* memory = part.template data<T>();
      PolynomialBackChunk<T> chunk(plan_, dropout_, memory);
      T *key_state = memory + chunk_scratch, *query_state = key_state + BumpAllocator<T>::rounded(size);
      for (int64_t item = first_item; item < end_item; ++item) {
        const Segment segment = segment_of(item);
        if (key_states) {
          std::copy_n(key_states.data<T>() + item * size, size, key_state);
          std::copy_n(query_states.data<T>() + item * size, size, query_state);
        } else {
          load_polynomial_state(plan_, call_.start_of(segment.head), key_state);
          std::fill_n(query_state, size, T(0));
        }
        sweep_forward(chunk, segment, key_state);
        sweep_backward(chunk, segment, query_state);
        if (dstart_ && segment.begin == 0)
          save_polynomial_state(plan_, query_state,
                                dstart_.data<T>() + segment.head * plan_.num_features * (plan_.dv + 1));
      }
      Count::add(chunk.flops());
    });
  }

 private:
  /// Queries and keys [begin, end) of a head.
  struct Segment {
    int64_t head, begin, end;
  };
  Segment segment_of(int64_t item) const {
    const int64_t segment = item % segments_, queries = call_.head(item / segments_).queries;
    return {.head = item / segments_,
            .begin = std::min(segment * length_, queries),
            .end = std::min((segment + 1) * length_, queries)};
  }

  /// The states over queries after each segment, [heads segments, state].
  Tensor query_states_after(Scratch& scratch) const {
    const Tensor states = Tensor::zeros(Shape{heads_ * segments_, plan_.state_size()}, dtype_of<T>);
    parallel_rows(heads_ * segments_, 1, [&](int64_t item, int64_t) {
      const Scratch::Part part(scratch);
      PolynomialBackChunk<T> chunk(plan_, dropout_, part.template data<T>());
      const Segment segment = segment_of(item);
      const PolynomialHead<T> x = call_.head(segment.head);
      for (int64_t t = segment.begin; t < segment.end && segment.begin > 0; t += plan_.chunk) {
        chunk.load_queries(x, grads_.head(x.batch, x.index % call_.H), t,
                           std::min(plan_.chunk, segment.end - t));
        chunk.add_queries(states.data<T>() + item * plan_.state_size());
      }
      Count::add(chunk.flops());
    });
    accumulate_segments(plan_, heads_, segments_, TokenRole::query, states.data<T>(),
                        [](int64_t) -> const T* { return nullptr; });
    return states;
  }

  /// From the first chunk to the last: dq from the state over earlier keys, to which the chunk's keys are
  /// then added. Leaves dq of the mapped queries in the place of dq. Pairs within the chunk are left to
  /// sweep_backward(), except with dropout of monomials: add_query_grads_by_spans() takes them, and the keys.
  void sweep_forward(PolynomialBackChunk<T>& chunk, const Segment& segment, T* key_state) const {
    const PolynomialHead<T> x = call_.head(segment.head);
    const PolynomialGradients<T> grads = grads_.head(x.batch, x.index % call_.H);
    const int64_t C = plan_.chunk;
    bool state_is_nonzero = call_.start_of(segment.head) != nullptr || segment.begin > 0;
    for (int64_t t = segment.begin; t < segment.end; t += C) {
      const int64_t count = std::min(C, segment.end - t);
      const int64_t visible = plan_.visible_keys(call_.lengths, x.batch, t, count);
      const bool is_last = t + C >= segment.end;
      chunk.load_queries(x, grads, t, count);
      if (!is_last) chunk.prefetch(x, grads, t + C, C);
      chunk.clear_dq();
      if (dropout_.drops_monomials() && visible > 0) {
        chunk.load_keys(x, t, visible);
        chunk.add_query_grads_by_spans(
            {.state = key_state, .is_nonzero = state_is_nonzero, .is_needed_later = !is_last});
      } else if (state_is_nonzero) {
        chunk.add_query_grads(key_state);
      }
      chunk.save_mapped_dq(grads, t);
      state_is_nonzero = state_is_nonzero || visible > 0;
      if (dropout_.drops_monomials() || visible == 0 || is_last) continue;
      chunk.load_keys(x, t, visible);
      chunk.add_keys(key_state);
    }
  }

  /// From the last chunk to the first: the pairs of the chunk, dk and dv from the state over later queries,
  /// to which the chunk's queries are then added, and what remains of dq.
  void sweep_backward(PolynomialBackChunk<T>& chunk, const Segment& segment, T* query_state) const {
    const PolynomialHead<T> x = call_.head(segment.head);
    const PolynomialGradients<T> grads = grads_.head(x.batch, x.index % call_.H);
    const int64_t C = plan_.chunk, num_chunks = ceil_div(segment.end - segment.begin, C);
    for (int64_t t = segment.begin + (num_chunks - 1) * C; t >= segment.begin; t -= C) {
      const int64_t count = std::min(C, segment.end - t);
      const int64_t visible = plan_.visible_keys(call_.lengths, x.batch, t, count);
      const bool has_later_queries = t + C<x.queries, is_needed_later = t> 0 || dstart_;
      chunk.load_queries(x, grads, t, count);
      if (t > segment.begin) chunk.prefetch(x, grads, t - C, C);
      chunk.load_mapped_dq(grads, t);
      chunk.clear_dk_dv();
      if (visible > 0) chunk.load_keys(x, t, visible);
      if (dropout_.drops_monomials() && visible > 0) {
        chunk.add_key_grads_by_spans(
            {.state = query_state, .is_nonzero = has_later_queries, .is_needed_later = is_needed_later});
      } else {
        if (visible > 0) chunk.add_pair_grads(/*causal=*/true);
        if (visible > 0 && has_later_queries) chunk.add_key_grads(query_state);
        if (is_needed_later) chunk.add_queries(query_state);
      }
      chunk.store_dq(grads, t, chunk.dq());
      chunk.store_dk_dv(grads, t, count, visible);
    }
  }

  const PolynomialCall<T>& call_;
  const GradientTensors<T>& grads_;
  const Tensor& dstart_;
  PolynomialPlan<T> plan_;
  PolynomialDropoutDraws<T> dropout_;
  int64_t heads_;
  int64_t segments_, length_;  // segments of each head, and their number of positions
};

/// dq and dstart of queries without keys, which see the start alone. One task is some segments of heads,
/// whose parts of dstart are then added in order.
template <class T>
void from_start(const PolynomialCall<T>& call, const GradientTensors<T>& grads, const Tensor& dstart) {
  const PolynomialPlan<T> plan(call.params, call.d, call.dv, /*factored=*/true);
  const PolynomialDropoutDraws<T> dropout(plan, call);
  const int64_t heads = call.B * call.H, C = plan.chunk, size = plan.state_size();
  const int64_t segments = num_polynomial_segments(plan, heads, call.queries);
  const int64_t length = ceil_div(ceil_div(call.queries, C), segments) * C;
  Tensor query_states;  // [heads segments, state], where there are several segments
  if (segments > 1) query_states = Tensor(Shape{heads * segments, size}, dtype_of<T>);
  const auto store_dstart = [&](const T* query_state, int64_t head) {
    save_polynomial_state(plan, query_state, dstart.data<T>() + head * plan.num_features * (plan.dv + 1));
  };
  const int64_t chunk_scratch = PolynomialBackChunk<T>::scratch(plan);
  Scratch scratch(bytes<T>(chunk_scratch + 2 * BumpAllocator<T>::rounded(size)));
  const int64_t grain = rows_per_task(2 * plan.pass_flops(length));
  parallel_rows(heads * segments, grain, [&](int64_t first_item, int64_t end_item) {
    const Scratch::Part part(scratch);
    PolynomialBackChunk<T> chunk(plan, dropout, part.template data<T>());
    T* key_state = part.template data<T>() + chunk_scratch;
    for (int64_t item = first_item; item < end_item; ++item) {
      const PolynomialHead<T> x = call.head(item / segments);
      const PolynomialGradients<T> to = grads.head(x.batch, x.index % call.H);
      T* query_state =
          query_states ? query_states.data<T>() + item * size : key_state + BumpAllocator<T>::rounded(size);
      std::fill_n(query_state, size, T(0));
      load_polynomial_state(plan, call.start_of(x.index), key_state);
      const int64_t end = std::min((item % segments + 1) * length, x.queries);
      // Each chunk: dq from the start, and its queries added to the state that becomes dstart.
      for (int64_t t = item % segments * length; t < end; t += C) {
        chunk.load_queries(x, to, t, std::min(C, end - t));
        chunk.clear_dq();
        chunk.add_query_grads_and_queries(key_state, query_state);
        chunk.store_dq(to, t, chunk.dq());
      }
      if (!query_states) store_dstart(query_state, x.index);
    }
    Count::add(chunk.flops());
  });
  // dstart of each head: the sum of its segments in order.
  for (int64_t head = 0; query_states && head < heads; ++head) {
    T* sum = query_states.data<T>() + head * segments * size;
    for (int64_t n = 1; n < segments; ++n) {
      for (int64_t i = 0; i < size; ++i) sum[i] += sum[n * size + i];
    }
    store_dstart(sum, head);
  }
}

/// dq, dk and dv pair by pair. One task is some heads: a loop over the chunks of keys of a head, and within
/// it over its chunks of queries; mapped_dq holds dq of all of them.
template <class T>
void dense(const PolynomialCall<T>& call, const GradientTensors<T>& grads) {
  const PolynomialPlan<T> plan(call.params, call.d, call.dv, /*factored=*/false);
  const PolynomialDropoutDraws<T> dropout(plan, call);
  const int64_t C = plan.chunk, query_chunks = ceil_div(call.queries, C), chunk_size = plan.d * C;
  const int64_t chunk_scratch = PolynomialBackChunk<T>::scratch(plan);
  Scratch scratch(bytes<T>(chunk_scratch + query_chunks * chunk_size));
  const int64_t grain = rows_per_task(5 * call.queries * call.keys * (call.d + call.dv));
  parallel_rows(call.B * call.H, grain, [&](int64_t first_head, int64_t end_head) {
    const Scratch::Part part(scratch);
    PolynomialBackChunk<T> chunk(plan, dropout, part.template data<T>());
    T* mapped_dq = part.template data<T>() + chunk_scratch;  // [query_chunks, d, chunk]
    for (int64_t head = first_head; head < end_head; ++head) {
      const PolynomialHead<T> x = call.head(head);
      const PolynomialGradients<T> to = grads.head(x.batch, head % call.H);
      const int64_t all_visible = plan.visible_keys(call.lengths, x.batch, 0, x.keys);
      std::fill_n(mapped_dq, query_chunks * chunk_size, T(0));
      for (int64_t j = 0; j < x.keys; j += C) {
        const int64_t count = std::min(C, x.keys - j),
                      visible = std::clamp<int64_t>(all_visible - j, 0, count);
        chunk.clear_dk_dv();
        if (visible > 0) chunk.load_keys(x, j, visible);
        for (int64_t t = call.params.causal ? j : 0; t < x.queries && visible > 0; t += C) {
          T* chunk_dq = mapped_dq + t / C * chunk_size;
          chunk.load_queries(x, to, t, std::min(C, x.queries - t));
          std::copy_n(chunk_dq, chunk_size, chunk.dq());
          chunk.add_pair_grads(call.params.causal && t == j);
          std::copy_n(chunk.dq(), chunk_size, chunk_dq);
        }
        chunk.store_dk_dv(to, j, count, visible);
      }
      for (int64_t t = 0; t < x.queries; t += C) {
        chunk.load_queries(x, to, t, std::min(C, x.queries - t));
        chunk.store_dq(to, t, mapped_dq + t / C * chunk_size);
      }
    }
    Count::add(chunk.flops());
  });
}

}  // namespace

/// Gradients of PolynomialAttention: from the start alone where there are no keys, pair by pair where that is
/// cheaper, else through sums over monomials.
template <>
void PolynomialAttentionBack::cpu<target_isa>(const PolynomialInputs& x, const PolynomialParams& params,
                                              const Tensor& out, const Tensor& sums, const Tensor& dout,
                                              const PolynomialInputs& dx) {
  visit_float("polynomial_attention", x.q.dtype(), [&]<class T>(Type<T>) {
    const PolynomialCall<T> call(x, params, out, sums);
    const GradientTensors<T> grads{.dout = HeadView<T>(dout, call.query_starts),
                                   .dq = HeadView<T>(dx.q, call.query_starts),
                                   .dk = HeadView<T>(dx.k, call.key_starts),
                                   .dv = HeadView<T>(dx.v, call.key_starts)};
    if (!x.k) {
      from_start<T>(call, grads, dx.start);
    } else if (prefers_dense_polynomial(call.keys, call.d, params)) {
      dense<T>(call, grads);
    } else {
      FactoredBackward<T>(call, grads, dx.start).run();
    }
  });
}

}  // namespace heed::kernel
