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

template <class T>
int64_t bytes(int64_t numbers) {
  return static_cast<int64_t>(sizeof(T)) * numbers;
}

/// dq, dk, dv and dstart of causal calls through sums over monomials. One task is some segments of heads,
/// each swept chunk by chunk forward and then backward.
template <class T>
void factored(const PolynomialCall<T>& call, const GradientTensors<T>& grads, const Tensor& dstart) {
  const PolynomialPlan<T> plan(call.params, call.d, call.dv, true, call.queries);
  const PolynomialDropoutDraws<T> dropout(plan, call);
  const int64_t heads = call.B * call.H, C = plan.chunk, size = plan.state();
  const int64_t segments = num_polynomial_segments(plan, heads, call.queries);
  const int64_t length = ceil_div(ceil_div(call.queries, C), segments) * C;
  const auto extent = [&](int64_t segment) {
    return std::pair{std::min(segment * length, call.queries),
                     std::min((segment + 1) * length, call.queries)};
  };
  const int64_t chunk_scratch = PolynomialBackChunk<T>::scratch(plan);
  Scratch scratch(bytes<T>(chunk_scratch + 2 * BumpAllocator<T>::rounded(size)));
  // The states over keys before each segment, and over queries after it.
  Tensor before, after;
  if (segments > 1) {
    before = polynomial_prefixes(plan, dropout, call, segments, length);
    after = Tensor::zeros(Shape{heads * segments, size}, dtype_of<T>);
    parallel_rows(heads * segments, 1, [&](int64_t at, int64_t) {
      const Scratch::Part part(scratch);
      PolynomialBackChunk<T> work(plan, dropout, part.template data<T>());
      const auto [begin, end] = extent(at % segments);
      const PolynomialHead<T> x = call.head(at / segments);
      for (int64_t t = begin; t < end && at % segments > 0; t += C) {
        work.load_queries(x, grads.head(x.batch, x.index % call.H), t, std::min(C, end - t));
        work.add_queries(x.index, t, after.data<T>() + at * size);
      }
      Count::add(work.flops());
    });
    accumulate_states(plan, heads, segments, false, after.data<T>(),
                      [](int64_t) -> const T* { return nullptr; });
  }
  const int64_t grain = rows_per_task(5 * plan.pass_flops(std::min(length, call.queries)));
  parallel_rows(heads * segments, grain, [&](int64_t first, int64_t last) {
    const Scratch::Part part(scratch);
    T* memory = part.template data<T>();
    PolynomialBackChunk<T> work(plan, dropout, memory);
    T *key_state = memory + chunk_scratch, *query_state = key_state + BumpAllocator<T>::rounded(size);
    for (int64_t at = first; at < last; ++at) {
      const int64_t head = at / segments, segment = at % segments;
      const PolynomialHead<T> x = call.head(head);
      const PolynomialGradients<T> to = grads.head(x.batch, head % call.H);
      const auto [begin, end] = extent(segment);
      bool has_state = call.start_of(head) != nullptr || segment > 0;
      if (before) {
        std::copy_n(before.data<T>() + at * size, size, key_state);
        std::copy_n(after.data<T>() + at * size, size, query_state);
      } else {
        load_polynomial_state(plan, call.start_of(head), key_state);
        std::fill_n(query_state, size, T(0));
      }
      // Forward over chunks: dq from the state over earlier keys, to which the chunk's keys are then added.
      for (int64_t t = begin; t < end; t += C) {
        const int64_t count = std::min(C, end - t),
                      visible = plan.visible_keys(call.lengths, x.batch, t, count);
        work.load_queries(x, to, t, count);
        if (t + C < end) work.fetch(x, to, t + C, C);
        work.clear_dq();
        if (dropout.drops_monomials() && visible > 0) {
          work.load_keys(x, t, visible);
          work.query_gradients_by_spans(head, t, key_state, has_state, t + C < end);
        } else if (has_state) {
          work.query_gradients_from(key_state, head, t);
        }
        work.save_dq(to, t);
        has_state = has_state || visible > 0;
        if (dropout.drops_monomials() || visible == 0 || t + C >= end) continue;
        work.load_keys(x, t, visible);
        work.add_keys(head, t, key_state);
      }
      // Backward over chunks: pairs of the chunk, dk and dv from the state over later queries, and what
      // remains of dq.
      for (int64_t t = begin + (end - begin - 1) / C * C; t >= begin && end > begin; t -= C) {
        const int64_t count = std::min(C, end - t),
                      visible = plan.visible_keys(call.lengths, x.batch, t, count);
        work.load_queries(x, to, t, count);
        if (t > begin) work.fetch(x, to, t - C, C);
        work.load_dq(to, t);
        work.clear_keys();
        const bool has_later_queries = t + C<call.queries, needs_state = t> 0 || dstart;
        if (visible > 0) work.load_keys(x, t, visible);
        if (dropout.drops_monomials() && visible > 0) {
          work.key_gradients_by_spans(head, t, query_state, has_later_queries, needs_state);
        } else {
          if (visible > 0) work.pairs(true);
          if (visible > 0 && has_later_queries) work.key_gradients_from(query_state, head, t);
          if (needs_state) work.add_queries(head, t, query_state);
        }
        work.finish_dq(to, t, work.dq());
        work.finish_keys(to, t, count, visible);
      }
      if (dstart && segment == 0)
        save_polynomial_state(plan, query_state, dstart.data<T>() + head * plan.features * (plan.dv + 1));
    }
    Count::add(work.flops());
  });
}

/// dq and dstart of queries without keys, which see the start alone. One task is some segments
/// of heads; their parts of dstart are then added in order.
template <class T>
void from_start(const PolynomialCall<T>& call, const GradientTensors<T>& grads, const Tensor& dstart) {
  const PolynomialPlan<T> plan(call.params, call.d, call.dv, true);
  const PolynomialDropoutDraws<T> dropout(plan, call);
  const int64_t heads = call.B * call.H, C = plan.chunk, size = plan.state();
  const int64_t segments = num_polynomial_segments(plan, heads, call.queries);
  const int64_t length = ceil_div(ceil_div(call.queries, C), segments) * C;
  Tensor parts;
  if (segments > 1) parts = Tensor(Shape{heads * segments, size}, dtype_of<T>);
  const int64_t chunk_scratch = PolynomialBackChunk<T>::scratch(plan);
  Scratch scratch(bytes<T>(chunk_scratch + 2 * BumpAllocator<T>::rounded(size)));
  parallel_rows(
      heads * segments, rows_per_task(2 * plan.pass_flops(length)), [&](int64_t first, int64_t last) {
        const Scratch::Part part(scratch);
        PolynomialBackChunk<T> work(plan, dropout, part.template data<T>());
        T* state = part.template data<T>() + chunk_scratch;
        for (int64_t at = first; at < last; ++at) {
          const PolynomialHead<T> x = call.head(at / segments);
          const PolynomialGradients<T> to = grads.head(x.batch, x.index % call.H);
          T* sums = parts ? parts.data<T>() + at * size : state + BumpAllocator<T>::rounded(size);
          std::fill_n(sums, size, T(0));
          load_polynomial_state(plan, call.start_of(x.index), state);
          const int64_t end = std::min((at % segments + 1) * length, call.queries);
          // Each chunk: dq from the start, and its queries added to the sums for dstart.
          for (int64_t t = at % segments * length; t < end; t += C) {
            work.load_queries(x, to, t, std::min(C, end - t));
            work.clear_dq();
            work.query_gradients_and_sums(state, sums, x.index, t);
            work.finish_dq(to, t, work.dq());
          }
          if (!parts) {
            save_polynomial_state(plan, sums, dstart.data<T>() + at * plan.features * (plan.dv + 1));
          }
        }
        Count::add(work.flops());
      });
  // dstart of each head: the sum of its segments in order.
  for (int64_t head = 0; parts && head < heads; ++head) {
    T* all = parts.data<T>() + head * segments * size;
    for (int64_t n = 1; n < segments; ++n) {
      for (int64_t i = 0; i < size; ++i) all[i] += all[n * size + i];
    }
    save_polynomial_state(plan, all, dstart.data<T>() + head * plan.features * (plan.dv + 1));
  }
}

/// dq, dk and dv pair by pair. One task is some heads: a loop over the chunks of keys of a head, and within
/// it over its chunks of queries; all_dq holds dq of all of them.
template <class T>
void dense(const PolynomialCall<T>& call, const GradientTensors<T>& grads) {
  const PolynomialPlan<T> plan(call.params, call.d, call.dv, false);
  const PolynomialDropoutDraws<T> dropout(plan, call);
  const int64_t C = plan.chunk, tiles = ceil_div(call.queries, C), chunk_size = plan.d * C;
  const int64_t chunk_scratch = PolynomialBackChunk<T>::scratch(plan);
  Scratch scratch(bytes<T>(chunk_scratch + tiles * chunk_size));
  const int64_t grain = rows_per_task(5 * call.queries * call.keys * (call.d + call.dv));
  parallel_rows(call.B * call.H, grain, [&](int64_t first, int64_t last) {
    const Scratch::Part part(scratch);
    PolynomialBackChunk<T> work(plan, dropout, part.template data<T>());
    T* all_dq = part.template data<T>() + chunk_scratch;
    for (int64_t head = first; head < last; ++head) {
      const PolynomialHead<T> x = call.head(head);
      const PolynomialGradients<T> to = grads.head(x.batch, head % call.H);
      const int64_t all_visible = plan.visible_keys(call.lengths, x.batch, 0, call.keys);
      std::fill_n(all_dq, tiles * chunk_size, T(0));
      for (int64_t j = 0; j < call.keys; j += C) {
        const int64_t count = std::min(C, call.keys - j),
                      visible = std::clamp<int64_t>(all_visible - j, 0, count);
        work.clear_keys();
        if (visible > 0) work.load_keys(x, j, visible);
        for (int64_t t = call.params.causal ? j : 0; t < call.queries && visible > 0; t += C) {
          work.load_queries(x, to, t, std::min(C, call.queries - t));
          std::copy_n(all_dq + t / C * chunk_size, chunk_size, work.dq());
          work.pairs(call.params.causal && t == j);
          std::copy_n(work.dq(), chunk_size, all_dq + t / C * chunk_size);
        }
        work.finish_keys(to, j, count, visible);
      }
      for (int64_t t = 0; t < call.queries; t += C) {
        work.load_queries(x, to, t, std::min(C, call.queries - t));
        work.finish_dq(to, t, all_dq + t / C * chunk_size);
      }
    }
    Count::add(work.flops());
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
    const GradientTensors<T> grads{HeadView<T>(dout), HeadView<T>(dx.q), HeadView<T>(dx.k),
                                   HeadView<T>(dx.v)};
    if (!x.k) {
      from_start<T>(call, grads, dx.start);
    } else if (prefers_dense_polynomial(call.keys, call.d, params)) {
      dense<T>(call, grads);
    } else {
      factored<T>(call, grads, dx.start);
    }
  });
}

}  // namespace heed::kernel
