// Tiled attention on the CPU, forward and backward: the tile loop over dense tiles.
#include "heed/core/kernels/attention/attention.h"

#include "heed/core/kernels/attention/attention_backward_loop.h"
#include "heed/core/kernels/attention/attention_forward_loop.h"
#include "heed/core/kernels/attention/attention_products.h"
#include "heed/core/kernels/attention/dense_tiles.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/pair_count.h"

namespace heed::kernel {
namespace {

/// Calls with at most this many queries, as in decoding, work query by query: vectors of queries would be
/// mostly empty.
constexpr int64_t few_queries = 3;

}  // namespace

template <>
void Attention::cpu<here>(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionParams& params,
                          const Tensor& out, const Tensor& lse) {
  visit_float("attention", q.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const Call<T> call(q, k, v, params);
    if (ProductLog::wanted()) note_products(DenseTiles<T>{call}, false);
    PairCount::add(call.pairs());
    attention_forward<T>(DenseTiles<T>{call, call.Tq <= few_queries && !call.dropped}, q, k, v, out, lse);
  });
}

template <>
void AttentionBack::cpu<here>(const AttentionBackTensors& t, const AttentionParams& params) {
  visit_float("attention", t.q.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const Call<T> call(t.q, t.k, t.v, params);
    if (ProductLog::wanted()) note_products(DenseTiles<T>{call}, true);
    attention_backward<T>(DenseTiles<T>{call}, t);
  });
}

}  // namespace heed::kernel
