// Pattern attention on the CPU: runs the tile loops of attention_forward_loop.h and attention_backward_loop.h
// over the tiles of a pattern's plan.
#include "heed/core/kernels/attention/pattern_attention.h"

#include "heed/core/kernels/attention/attention_backward_loop.h"
#include "heed/core/kernels/attention/attention_forward_loop.h"
#include "heed/core/kernels/attention/pattern_tiles.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {

template <>
void PatternAttention::cpu<target_isa>(const Tensor& q, const Tensor& k, const Tensor& v,
                                       const PatternParams& params, const Tensor& out, const Tensor& lse) {
  visit_float("pattern_attention", q.dtype(), [&]<class T>(Type<T>) {
    const PatternAttentionCall<T> call(q, k, v, params);
    PairCount::add(call.num_pairs());
    attention_forward<T>(PatternTiles<T>{call}, q, k, v, out, lse);
  });
}

template <>
void PatternAttentionBack::cpu<target_isa>(const AttentionBackTensors& t, const PatternParams& params) {
  visit_float("pattern_attention", t.q.dtype(), [&]<class T>(Type<T>) {
    const PatternAttentionCall<T> call(t.q, t.k, t.v, params);
    attention_backward<T>(PatternTiles<T>{call}, t);
  });
}

}  // namespace heed::kernel
