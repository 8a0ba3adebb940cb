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
  const PolynomialPlan<T> plan(params, call.d, call.dv, /*factored=*/true);
  const PolynomialDropoutDraws<T> dropout(plan, call);
  const int64_t heads = call.B * call.H, size = plan.state_size();
  const int64_t segments = num_polynomial_segments(plan, heads, call.keys);
  const int64_t length = ceil_div(ceil_div(call.keys, plan.chunk), segments) * plan.chunk;
  const int64_t sums_scratch = PolynomialKeySums<T>::scratch(plan);
  Scratch scratch(static_cast<int64_t>(sizeof(T)) * (sums_scratch + size));
  const int64_t saved_size = plan.num_features * (plan.dv + 1);  // numbers of a contiguous state
  const Tensor segment_states =
      segments > 1 ? Tensor(Shape{heads * segments, saved_size}, dtype_of<T>) : state;
  const int64_t grain = rows_per_task(plan.pass_flops(length));
  parallel_rows(heads * segments, grain, [&](int64_t first_item, int64_t end_item) {
    const Scratch::Part part(scratch);
    PolynomialKeySums<T> key_sums(plan, dropout, part.template data<T>());
    T* segment_state = part.template data<T>() + sums_scratch;
    int64_t flops = 0;
    for (int64_t item = first_item; item < end_item; ++item) {
      const PolynomialHead<T> x = call.head(item / segments);
      const int64_t begin = std::min(item % segments * length, x.keys),
                    end = std::min(begin + length, x.keys);
      const int64_t visible = plan.visible_keys(call.lengths, x.batch, begin, end - begin);
      std::fill_n(segment_state, size, T(0));
      flops += key_sums.add(x, begin, begin + visible, segment_state);
      save_polynomial_state(plan, segment_state, segment_states.data<T>() + item * saved_size);
    }
    Count::add(flops);
  });
  // state of each head: the sum of its segments in order.
  for (int64_t head = 0; segments > 1 && head < heads; ++head) {
    T* sum = state.data<T>() + head * saved_size;
    const T* terms = segment_states.data<T>() + head * segments * saved_size;
    std::copy_n(terms, saved_size, sum);
    for (int64_t n = 1; n < segments; ++n) {
      for (int64_t i = 0; i < saved_size; ++i) sum[i] += terms[n * saved_size + i];
    }
  }
}

/// dk and dv from dstate [B, H, f, dv + 1], which takes the place of a query state. One task is some runs of
/// keys of heads, chunk by chunk.
template <class T>
void backward(const Tensor& k, const Tensor& v, const PolynomialParams& params, const Tensor& dstate,
              const Tensor& dk, const Tensor& dv) {
  const PolynomialCall<T> call({.q = {}, .k = k, .v = v, .start = dstate}, params, Tensor(), Tensor());
  const PolynomialPlan<T> plan(params, call.d, call.dv, /*factored=*/true);
  const PolynomialDropoutDraws<T> dropout(plan, call);
  const HeadView<T> dks(dk, call.key_starts), dvs(dv, call.key_starts);
  const int64_t runs = std::max<int64_t>(1, ceil_div(call.keys, std::max<int64_t>(1024, plan.chunk)));
  const int64_t length = ceil_div(ceil_div(call.keys, plan.chunk), runs) * plan.chunk;
  const int64_t chunk_scratch = PolynomialBackChunk<T>::scratch(plan);
  Scratch scratch(static_cast<int64_t>(sizeof(T)) * (chunk_scratch + plan.state_size()));
  const int64_t grain = rows_per_task(2 * plan.pass_flops(length));
  parallel_rows(call.B * call.H * runs, grain, [&](int64_t first_item, int64_t end_item) {
    const Scratch::Part part(scratch);
    PolynomialBackChunk<T> chunk(plan, dropout, part.template data<T>());
    T* query_state = part.template data<T>() + chunk_scratch;
    for (int64_t item = first_item; item < end_item; ++item) {
      const PolynomialHead<T> x = call.head(item / runs);
      const int64_t h = x.index % call.H;
      const PolynomialGradients<T> grads{
          .dk = dks.at(x.batch, h, 0), .dv = dvs.at(x.batch, h, 0), .ld_dk = dks.ld, .ld_dv = dvs.ld};
      const bool is_new_head = item == first_item || item % runs == 0;
      if (is_new_head) load_polynomial_state(plan, call.start_of(x.index), query_state);
      const int64_t end = std::min((item % runs + 1) * length, x.keys);
      for (int64_t t = item % runs * length; t < end; t += plan.chunk) {
        const int64_t count = std::min(plan.chunk, end - t),
                      visible = plan.visible_keys(call.lengths, x.batch, t, count);
        chunk.clear_dk_dv();
        if (visible > 0) {
          chunk.load_keys(x, t, visible);
          chunk.add_key_grads(query_state);
        }
        chunk.store_dk_dv(grads, t, count, visible);
      }
    }
    Count::add(chunk.flops());
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
