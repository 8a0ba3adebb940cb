// Sums of monomials over all keys on the CPU, and their gradients. Few, long heads are split into segments.
#include "heed/core/kernels/linear_attention/polynomial_sums.h"

#include "heed/core/kernels/linear_attention/polynomial_backward_chunk.h"
#include "heed/core/kernels/simd/simd.h"

namespace heed::kernel {
namespace {

/// state [B, H, f, dv + 1] = sum over visible keys j of m(k_j) [v_j, 1]^T. One task is some segments of
/// heads, each with a sum of its own; the sums of a head are then added in order.
template <class T>
void forward(const Tensor& k, const Tensor& v, const PolynomialParams& params, const Tensor& state) {
  const PolynomialCall<T> call({.q = {}, .k = k, .v = v, .start = {}}, params, Tensor(), Tensor());
  const PolynomialPlan<T> plan(params, call.d, call.dv, true);
  const PolynomialDropoutDraws<T> dropout(plan, call);
  const int64_t heads = call.B * call.H, size = plan.state();
  const int64_t segments = num_polynomial_segments(plan, heads, call.keys);
  const int64_t length = ceil_div(ceil_div(call.keys, plan.chunk), segments) * plan.chunk;
  Scratch scratch(static_cast<int64_t>(sizeof(T)) * (PolynomialKeySums<T>::scratch(plan) + size));
  const int64_t shape = plan.features * (plan.dv + 1);
  const Tensor parts = segments > 1 ? Tensor(Shape{heads * segments, shape}, dtype_of<T>) : state;
  parallel_rows(heads * segments, rows_per_task(plan.pass_flops(length)), [&](int64_t first, int64_t last) {
    const Scratch::Part part(scratch);
    PolynomialKeySums<T> work(plan, dropout, part.template data<T>());
    T* sums = part.template data<T>() + PolynomialKeySums<T>::scratch(plan);
    int64_t flops = 0;
    for (int64_t at = first; at < last; ++at) {
      const PolynomialHead<T> x = call.head(at / segments);
      const int64_t begin = std::min(at % segments * length, call.keys),
                    end = std::min(begin + length, call.keys);
      std::fill_n(sums, size, T(0));
      flops += work.add(x, begin, begin + plan.visible_keys(call.lengths, x.batch, begin, end - begin), sums);
      save_polynomial_state(plan, sums, parts.data<T>() + at * shape);
    }
    Count::add(flops);
  });
  // state of each head: the sum of its segments in order.
  for (int64_t head = 0; segments > 1 && head < heads; ++head) {
    T* to = state.data<T>() + head * shape;
    const T* from = parts.data<T>() + head * segments * shape;
    std::copy_n(from, shape, to);
    for (int64_t n = 1; n < segments; ++n) {
      for (int64_t i = 0; i < shape; ++i) to[i] += from[n * shape + i];
    }
  }
}

/// dk and dv from dstate [B, H, f, dv + 1]. One task is some shares of the keys of a head, chunk by chunk.
template <class T>
void backward(const Tensor& k, const Tensor& v, const PolynomialParams& params, const Tensor& dstate,
              const Tensor& dk, const Tensor& dv) {
  const PolynomialCall<T> call({.q = {}, .k = k, .v = v, .start = dstate}, params, Tensor(), Tensor());
  const PolynomialPlan<T> plan(params, call.d, call.dv, true);
  const PolynomialDropoutDraws<T> dropout(plan, call);
  const HeadView<T> dks(dk), dvs(dv);
  const int64_t shares = std::max<int64_t>(1, ceil_div(call.keys, std::max<int64_t>(1024, plan.chunk)));
  const int64_t length = ceil_div(ceil_div(call.keys, plan.chunk), shares) * plan.chunk;
  const int64_t chunk_scratch = PolynomialBackChunk<T>::scratch(plan);
  Scratch scratch(static_cast<int64_t>(sizeof(T)) * (chunk_scratch + plan.state()));
  parallel_rows(
      call.B * call.H * shares, rows_per_task(2 * plan.pass_flops(length)), [&](int64_t first, int64_t last) {
        const Scratch::Part part(scratch);
        PolynomialBackChunk<T> work(plan, dropout, part.template data<T>());
        T* state = part.template data<T>() + chunk_scratch;
        for (int64_t at = first; at < last; ++at) {
          const PolynomialHead<T> x = call.head(at / shares);
          const int64_t h = x.index % call.H;
          const PolynomialGradients<T> to{
              .dk = dks.at(x.batch, h, 0), .dv = dvs.at(x.batch, h, 0), .ld_dk = dks.ld, .ld_dv = dvs.ld};
          if (at == first || at % shares == 0) load_polynomial_state(plan, call.start_of(x.index), state);
          const int64_t end = std::min((at % shares + 1) * length, call.keys);
          for (int64_t t = at % shares * length; t < end; t += plan.chunk) {
            const int64_t count = std::min(plan.chunk, end - t),
                          visible = plan.visible_keys(call.lengths, x.batch, t, count);
            work.clear_keys();
            if (visible > 0) {
              work.load_keys(x, t, visible);
              work.key_gradients_from(state, x.index, t);
            }
            work.finish_keys(to, t, count, visible);
          }
        }
        Count::add(work.flops());
      });
}

}  // namespace

template <>
void PolynomialSums::cpu<target_isa>(const Tensor& k, const Tensor& v, const PolynomialParams& params,
                                     const Tensor& state) {
  visit_float("polynomial_attention", k.dtype(), [&]<class T>(Type<T>) { forward<T>(k, v, params, state); });
}

template <>
void PolynomialSumsBack::cpu<target_isa>(const Tensor& k, const Tensor& v, const PolynomialParams& params,
                                         const Tensor& dstate, const Tensor& dk, const Tensor& dv) {
  visit_float("polynomial_attention", k.dtype(),
              [&]<class T>(Type<T>) { backward<T>(k, v, params, dstate, dk, dv); });
}

}  // namespace heed::kernel
