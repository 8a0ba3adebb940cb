// Dense attention on the CPU: runs the tile loops of attention_forward_loop.h and attention_backward_loop.h
// over dense tiles.
#include "heed/core/kernels/attention/attention.h"

#include <map>
#include <memory>

#include "heed/core/kernels/attention/attention_amx.h"
#include "heed/core/kernels/attention/attention_backward_loop.h"
#include "heed/core/kernels/attention/attention_forward_loop.h"
#include "heed/core/kernels/attention/dense_tiles.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

/// Records the matrix products of a call tile by tile in the ProductLog. The forward pass computes scores and
/// outputs, the backward pass scores and the gradients of weights, v, k and q.
template <class T>
void log_products(const DenseTiles<T>& tiles, Direction direction) {
  const bool is_backward = direction == Direction::backward;
  const AttentionCall<T>& call = tiles.call;
  const auto tile_pair = std::make_unique<TilePair<T>>();
  std::map<Product, int64_t> counts;
  const auto count_tile_pair = [&](const TileRows&) {
    tile_pair->tile_mask.each_by_keys([&](const TileMask::Rectangle& r) {
      const int64_t keys = r.key_end - r.key_begin, queries = r.query_end - r.query_begin;
      counts[{.m = keys, .n = queries, .k = call.d}] += call.H;
      if (!is_backward) return;
      counts[{.m = keys, .n = queries, .k = call.dv}] += call.H;
      counts[{.m = keys, .n = call.dv, .k = queries, .accumulates = true}] += call.H;
      counts[{.m = keys, .n = call.d, .k = queries, .accumulates = true}] += call.H;
    });
    tile_pair->tile_mask.each_by_queries([&](const TileMask::Rectangle& r) {
      const int64_t keys = r.key_end - r.key_begin, queries = r.query_end - r.query_begin;
      counts[{.m = queries,
              .n = is_backward ? call.d : call.dv,
              .k = keys,
              .a_transposed = true,
              .accumulates = true}] += call.H;
    });
  };
  for (int64_t b = 0; b < call.B; ++b) {
    for (int64_t n = 0; n < tiles.query_tiles(b, 0, 0); ++n)
      tiles.each_key_tile(tiles.query_tile(b, 0, 0, n), 0, call.Tk, *tile_pair, count_tile_pair);
  }
  for (const auto& [product, count] : counts) {
    Product batched = product;
    batched.batch = count;
    batched.rounding = call.rounds ? Rounding::bf16 : Rounding::none;
    ProductLog::note(batched);
  }
}

}  // namespace

/// out and lse: the tile loops, one task being some tiles of 64 queries; by AMX where the call rounds.
template <>
void Attention::cpu<target_isa>(const Tensor& q, const Tensor& k, const Tensor& v,
                                const AttentionParams& params, const Tensor& out, const Tensor& lse) {
  visit_float("attention", q.dtype(), [&]<class T>(Type<T>) {
    const AttentionCall<T> call(q, k, v, params);
    if (ProductLog::wanted()) log_products(DenseTiles<T>{call}, Direction::forward);
    PairCount::add(call.num_pairs());
    if constexpr (std::is_same_v<T, float> && bf16_tiles::built) {
      if (call.rounds) return amx::attention_forward(DenseTiles<T>{call}, q, k, v, out, lse);
    }
    const bool row_by_row = call.Tq <= few_queries && !call.has_dropout && !params.formulas;
    attention_forward<T>(DenseTiles<T>{call, row_by_row}, q, k, v, out, lse);
  });
}

/// dq, dk, dv and drelative: the tile loops, one task being some runs of keys; by AMX where the call rounds.
template <>
void AttentionBack::cpu<target_isa>(const AttentionBackTensors& t, const AttentionParams& params) {
  visit_float("attention", t.q.dtype(), [&]<class T>(Type<T>) {
    const AttentionCall<T> call(t.q, t.k, t.v, params);
    if (ProductLog::wanted()) log_products(DenseTiles<T>{call}, Direction::backward);
    if constexpr (std::is_same_v<T, float> && bf16_tiles::built) {
      if (call.rounds) return amx::attention_backward(DenseTiles<T>{call}, t);
    }
    attention_backward<T>(DenseTiles<T>{call}, t);
  });
}

}  // namespace heed::kernel
