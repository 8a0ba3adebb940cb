// PolynomialAttention backward on the CPU: a sweep from the left with the state over keys gives dq, and a
// sweep from the right with the state over queries gives dk, dv and the rest of dq.
#include "heed/core/kernels/linear_attention/polynomial_backward.h"

#include "heed/core/kernels/linear_attention/polynomial_backward_chunk.h"
#include "heed/core/kernels/simd/simd.h"

namespace heed::kernel {
namespace {

/// The gradient tensors, by head.
template <class T>
struct GradientTensors {
  const Tensor &dout, &dq, &dk, &dv;
  PolynomialGradients<T> head(int64_t b, int64_t h) const {
    const HeadView<T> g(dout), q(dq);
    PolynomialGradients<T> to{.dout = {g.at(b, h, 0), g.ld}, .dq = q.at(b, h, 0), .ld_dq = q.ld};
    if (dk) {
      const HeadView<T> k(dk), v(dv);
      to.dk = k.at(b, h, 0);
      to.ld_dk = k.ld;
      to.dv = v.at(b, h, 0);
      to.ld_dv = v.ld;
    }
    return to;
  }
};

template <class T>
int64_t bytes(int64_t numbers) {
  return static_cast<int64_t>(sizeof(T)) * numbers;
}

/// dq, dk, dv and dstart of causal calls through sums over monomials. One task is some segments of heads,
/// each swept chunk by chunk from the left and then from the right.
template <class T>
void factored(const PolynomialCall<T>& call, const GradientTensors<T>& grads, const Tensor& dstart) {
  const PolynomialPlan<T> plan(call.params, call.d, call.dv, true, call.queries);
  const PolynomialDrop<T> drop(plan, call);
  const int64_t heads = call.B * call.H, C = plan.chunk, size = plan.state();
  const int64_t segments = num_polynomial_segments(plan, heads, call.queries);
  const int64_t length = ceil_div(ceil_div(call.queries, C), segments) * C;
  const auto extent = [&](int64_t segment) {
    return std::pair{std::min(segment * length, call.queries),
                     std::min((segment + 1) * length, call.queries)};
  };
  const int64_t room = PolynomialBackChunk<T>::scratch(plan);
  Scratch scratch(bytes<T>(room + 2 * BumpAllocator<T>::rounded(size)));
  // The states over keys before each segment, and over queries after it.
  Tensor before, after;
  if (segments > 1) {
    before = polynomial_prefixes(plan, drop, call, segments, length);
    after = Tensor::zeros(Shape{heads * segments, size}, dtype_of<T>);
    parallel_rows(heads * segments, 1, [&](int64_t at, int64_t) {
      const Scratch::Part part(scratch);
      PolynomialBackChunk<T> work(plan, drop, part.template data<T>());
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
    PolynomialBackChunk<T> work(plan, drop, memory);
    T *left = memory + room, *right = left + BumpAllocator<T>::rounded(size);
    for (int64_t at = first; at < last; ++at) {
      const int64_t head = at / segments, segment = at % segments;
      const PolynomialHead<T> x = call.head(head);
      const PolynomialGradients<T> to = grads.head(x.batch, head % call.H);
      const auto [begin, end] = extent(segment);
      bool has_state = call.start_of(head) != nullptr || segment > 0;
      if (before) {
        std::copy_n(before.data<T>() + at * size, size, left);
        std::copy_n(after.data<T>() + at * size, size, right);
      } else {
        load_polynomial_state(plan, call.start_of(head), left);
        std::fill_n(right, size, T(0));
      }
      // From the left: dq from the state over earlier keys, to which the chunk's keys are then added.
      for (int64_t t = begin; t < end; t += C) {
        const int64_t count = std::min(C, end - t), seen = plan.seen(call.lengths, x.batch, t, count);
        work.load_queries(x, to, t, count);
        if (t + C < end) work.fetch(x, to, t + C, C);
        work.clear_dq();
        if (drop.of_monomials() && seen > 0) {
          work.load_keys(x, t, seen);
          work.dropped_queries(head, t, left, has_state, t + C < end);
        } else if (has_state) {
          work.queries_from(left, head, t);
        }
        work.save_dq(to, t);
        has_state = has_state || seen > 0;
        if (drop.of_monomials() || seen == 0 || t + C >= end) continue;
        work.load_keys(x, t, seen);
        work.add_keys(head, t, left);
      }
      // From the right: pairs of the chunk, dk and dv from the state over later queries, the rest of dq.
      for (int64_t t = begin + (end - begin - 1) / C * C; t >= begin && end > begin; t -= C) {
        const int64_t count = std::min(C, end - t), seen = plan.seen(call.lengths, x.batch, t, count);
        work.load_queries(x, to, t, count);
        if (t > begin) work.fetch(x, to, t - C, C);
        work.load_dq(to, t);
        work.clear_keys();
        const bool has_later = (t + C < call.queries), goes_on = t > 0 || dstart;
        if (seen > 0) work.load_keys(x, t, seen);
        if (drop.of_monomials() && seen > 0) {
          work.dropped_keys(head, t, right, has_later, goes_on);
        } else {
          if (seen > 0) work.pairs(true);
          if (seen > 0 && has_later) work.keys_from(right, head, t);
          if (goes_on) work.add_queries(head, t, right);
        }
        work.finish_dq(to, t, work.dq());
        work.finish_keys(to, t, count, seen);
      }
      if (dstart && segment == 0)
        save_polynomial_state(plan, right, dstart.data<T>() + head * plan.features * (plan.dv + 1));
    }
    Count::add(work.flops());
  });
}

/// dq and dstart of queries without keys of their own, which see the start alone. One task is some segments
/// of heads; their parts of dstart are then added in order.
template <class T>
void from_start(const PolynomialCall<T>& call, const GradientTensors<T>& grads, const Tensor& dstart) {
  const PolynomialPlan<T> plan(call.params, call.d, call.dv, true);
  const PolynomialDrop<T> drop(plan, call);
  const int64_t heads = call.B * call.H, C = plan.chunk, size = plan.state();
  const int64_t segments = num_polynomial_segments(plan, heads, call.queries);
  const int64_t length = ceil_div(ceil_div(call.queries, C), segments) * C;
  Tensor parts;
  if (segments > 1) parts = Tensor(Shape{heads * segments, size}, dtype_of<T>);
  const int64_t room = PolynomialBackChunk<T>::scratch(plan);
  Scratch scratch(bytes<T>(room + 2 * BumpAllocator<T>::rounded(size)));
  parallel_rows(
      heads * segments, rows_per_task(2 * plan.pass_flops(length)), [&](int64_t first, int64_t last) {
        const Scratch::Part part(scratch);
        PolynomialBackChunk<T> work(plan, drop, part.template data<T>());
        T* state = part.template data<T>() + room;
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
            work.queries_between(state, sums, x.index, t);
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
/// it over its chunks of queries, whose dq are all kept.
template <class T>
void dense(const PolynomialCall<T>& call, const GradientTensors<T>& grads) {
  const PolynomialPlan<T> plan(call.params, call.d, call.dv, false);
  const PolynomialDrop<T> drop(plan, call);
  const int64_t C = plan.chunk, tiles = ceil_div(call.queries, C), part_of = plan.d * C;
  const int64_t room = PolynomialBackChunk<T>::scratch(plan);
  Scratch scratch(bytes<T>(room + tiles * part_of));
  const int64_t grain = rows_per_task(5 * call.queries * call.keys * (call.d + call.dv));
  parallel_rows(call.B * call.H, grain, [&](int64_t first, int64_t last) {
    const Scratch::Part part(scratch);
    PolynomialBackChunk<T> work(plan, drop, part.template data<T>());
    T* all_dq = part.template data<T>() + room;
    for (int64_t head = first; head < last; ++head) {
      const PolynomialHead<T> x = call.head(head);
      const PolynomialGradients<T> to = grads.head(x.batch, head % call.H);
      const int64_t seen = plan.seen(call.lengths, x.batch, 0, call.keys);
      std::fill_n(all_dq, tiles * part_of, T(0));
      for (int64_t j = 0; j < call.keys; j += C) {
        const int64_t count = std::min(C, call.keys - j), here_seen = std::clamp<int64_t>(seen - j, 0, count);
        work.clear_keys();
        if (here_seen > 0) work.load_keys(x, j, here_seen);
        for (int64_t t = call.params.causal ? j : 0; t < call.queries && here_seen > 0; t += C) {
          work.load_queries(x, to, t, std::min(C, call.queries - t));
          std::copy_n(all_dq + t / C * part_of, part_of, work.dq());
          work.pairs(call.params.causal && t == j);
          std::copy_n(work.dq(), part_of, all_dq + t / C * part_of);
        }
        work.finish_keys(to, j, count, here_seen);
      }
      for (int64_t t = 0; t < call.queries; t += C) {
        work.load_queries(x, to, t, std::min(C, call.queries - t));
        work.finish_dq(to, t, all_dq + t / C * part_of);
      }
    }
    Count::add(work.flops());
  });
}

}  // namespace

/// Gradients of PolynomialAttention: from the start alone where there are no keys, pair by pair where that is
/// cheaper, else through sums over monomials.
template <>
void PolynomialAttentionBack::cpu<here>(const PolynomialInputs& x, const PolynomialParams& params,
                                        const Tensor& out, const Tensor& sums, const Tensor& dout,
                                        const PolynomialInputs& dx) {
  visit_float("fastmax", x.q.dtype(), [&]<class T>(Type<T>) {
    const PolynomialCall<T> call(x, params, out, sums);
    const GradientTensors<T> grads{dout, dx.q, dx.k, dx.v};
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
