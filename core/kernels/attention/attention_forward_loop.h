// The forward pass over all tiles on the CPU, for dense and for pattern attention.
#pragma once

#include "heed/core/kernels/attention/attention_tiles.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {

/// The tensors of a forward pass as rows of heads.
template <class T>
struct ForwardHeads {
  HeadView<const T> q, k, v;
  HeadView<T> out;
  LseView<T> lse;  ///< log-sum-exp of row (b H + h) Tq + i
};

/// Computes out and lse of tiles of queries, one after the other, in its working memory.
template <class T, class Tiles>
class ForwardLoop {
 public:
  using Queries = typename Tiles::Queries;

  /// Bytes of working memory.
  static int64_t scratch_bytes(int64_t d, int64_t dv) {
    const int64_t gathered = Tiles::scattered_rows ? 2 * padded_tile_size<T>(d) + padded_tile_size<T>(dv) : 0;
    return LoopMemory<T>::bytes(ForwardTile<T>::scratch_size(d, dv) + ForwardRow<T>::scratch_size(d, dv) +
                                gathered + padded_tile_size<T>(dv) + 2 * tile);
  }
  ForwardLoop(LoopMemory<T> memory, const Tiles& tiles, const ForwardHeads<T>& tensors)
      : tiles_(tiles),
        call_(tiles.call),
        tensors_(tensors),
        tile_pair_(memory.tile_pair),
        tile_(memory.arena.take(ForwardTile<T>::scratch_size(call_.d, call_.dv)), call_.d, call_.dv),
        row_(memory.arena.take(ForwardRow<T>::scratch_size(call_.d, call_.dv)), call_.d, call_.dv) {
    BumpAllocator<T>& arena = memory.arena;
    if (Tiles::scattered_rows) {
      q_tile_ = arena.take(padded_tile_size<T>(call_.d));
      k_tile_ = arena.take(padded_tile_size<T>(call_.d));
      v_tile_ = arena.take(padded_tile_size<T>(call_.dv));
    }
    out_tile_ = arena.take(padded_tile_size<T>(call_.dv));
    lse_tile_.log = arena.take(tile);
    lse_tile_.residual = arena.take(tile);
  }

  /// Computes one tile of queries [<= 64, d] against each tile of keys that they see. Passes after the
  /// first merge their result with that of the earlier ones. Returns the number of operations.
  int64_t run(const Queries& queries, bool is_later_pass) {
    if (queries.row_by_row) return run_row_by_row(queries, is_later_pass);
    const int64_t b = queries.b, h = queries.h;
    const Rows<T> q = rows_of<T>({tensors_.q.at(b, h, 0), tensors_.q.ld}, queries.rows, call_.d, q_tile_);
    tile_.start(q.data, q.ld, queries.rows.count, call_.scale_log2(), call_.sink_log2(h));
    if (is_later_pass) resume(queries);
    const Rows<T> k_head = key_rows(tensors_.k, queries), v_head = key_rows(tensors_.v, queries);
    int64_t flops = 0;
    tiles_.each_key_tile(queries, 0, call_.num_keys(b), tile_pair_, [&](const TileRows& keys) {
      const Rows<T> k = rows_of(k_head, keys, call_.d, k_tile_), v = rows_of(v_head, keys, call_.dv, v_tile_);
      flops += tile_.add_keys(k.data, k.ld, v.data, v.ld, tile_pair_.tile_mask, tile_pair_.modifiers);
    });
    finish(queries);
    return flops;
  }

  /// Prefetches the inputs and outputs of a head.
  void prefetch_head(int64_t b, int64_t h) const {
    fetch_rows(tensors_.q.at(b, h, 0), tensors_.q.ld, call_.num_queries(b), call_.d);
    fetch_rows(tensors_.k.at(b, h / call_.group, 0), tensors_.k.ld, call_.num_keys(b), call_.d);
    fetch_rows(tensors_.v.at(b, h / call_.group, 0), tensors_.v.ld, call_.num_keys(b), call_.dv);
    fetch_rows(tensors_.out.at(b, h, 0), tensors_.out.ld, call_.num_queries(b), call_.dv);
  }

 private:
  /// Rows of k or v of the head that these queries attend to.
  Rows<T> key_rows(const HeadView<const T>& keys, const QueryTile& queries) const {
    return {keys.at(queries.b, queries.h / call_.group, 0), keys.ld};
  }
  /// The log-sum-exps of the head of these queries.
  LseView<T> lse_of(const QueryTile& queries) const {
    return tensors_.lse.from((queries.b * call_.H + queries.h) * call_.Tq);
  }

  /// Continues from the output and log-sum-exps of the earlier passes.
  void resume(const QueryTile& queries) {
    gather_rows<T>({tensors_.out.at(queries.b, queries.h, 0), tensors_.out.ld}, queries.rows, call_.dv,
                   out_tile_);
    for (int64_t i = 0; i < queries.rows.count; ++i) lse_tile_.put(i, lse_of(queries).at(queries.rows[i]));
    tile_.resume(out_tile_, simd::padded<T>(call_.dv), lse_tile_);
  }

  /// Writes out and lse of the tile.
  void finish(const QueryTile& queries) {
    const LseView<T> lse = lse_of(queries);
    if (queries.rows.gap == 1) {
      tile_.finish(tensors_.out.at(queries.b, queries.h, queries.rows.first), tensors_.out.ld,
                   lse.from(queries.rows.first));
      return;
    }
    tile_.finish(out_tile_, call_.dv, lse_tile_);
    for (int64_t i = 0; i < queries.rows.count; ++i) {
      simd::scaled(out_tile_ + i * call_.dv, call_.dv, T(1),
                   tensors_.out.at(queries.b, queries.h, queries.rows[i]));
      lse.put(queries.rows[i], lse_tile_.at(i));
    }
  }

  /// Computes each query of the tile by itself, with its own keys.
  int64_t run_row_by_row(const Queries& queries, bool is_later_pass) {
    const int64_t b = queries.b, h = queries.h;
    const Rows<T> k = key_rows(tensors_.k, queries), v = key_rows(tensors_.v, queries);
    int64_t flops = 0;
    for (int64_t n = 0; n < queries.rows.count; ++n) {
      const int64_t i = queries.rows[n];
      row_.start(tensors_.q.at(b, h, i), call_.scale_log2(), call_.sink_log2(h));
      tiles_.each_key_list(queries, i, 0, call_.num_keys(b),
                           [&](KeyList keys, const T* bias, const T* dropout_factors) {
                             flops += row_.add_keys(k, v, keys, bias, call_.softcap, dropout_factors);
                           });
      T* out = tensors_.out.at(b, h, i);
      const LseView<T> lse = lse_of(queries).from(i);
      if (is_later_pass) {
        row_.finish(out_tile_, lse_tile_);
        lse.put(0, merge_rows(out, lse.at(0), out_tile_, lse_tile_.at(0)));
      } else {
        row_.finish(out, lse);
      }
    }
    return flops;
  }

  /// Merges the output pass_out [dv] of a query in this pass into `out` of the earlier passes. Returns the
  /// log-sum-exp over the keys of all of them.
  RowLse<T> merge_rows(T* out, const RowLse<T>& lse, const T* pass_out, const RowLse<T>& pass_lse) const {
    if (pass_lse.log == minus_infinity<T>) return lse;
    const MergedRows<T> merged(lse, pass_lse);
    for (int64_t c = 0; c < call_.dv; ++c)
      out[c] = (out[c] * merged.factor_a + pass_out[c] * merged.factor_b) / merged.total;
    return merged.lse;
  }

  const Tiles& tiles_;
  const AttentionCall<T>& call_;
  const ForwardHeads<T>& tensors_;
  TilePair<T>& tile_pair_;
  ForwardTile<T> tile_;
  ForwardRow<T> row_;
  // Rows of a tile, gathered.
  T *q_tile_ = nullptr, *k_tile_ = nullptr, *v_tile_ = nullptr, *out_tile_;
  LseView<T> lse_tile_;
};

/// out[b, h, i, :] = sum_j softmax_j(score_ij) v_j and lse over the pairs of `tiles`, pass by pass. One task
/// is some tiles of queries.
template <class T, class Tiles>
void attention_forward(const Tiles& tiles, const Tensor& q, const Tensor& k, const Tensor& v,
                       const Tensor& out, const Tensor& lse) {
  using Loop = ForwardLoop<T, Tiles>;
  const AttentionCall<T>& call = tiles.call;
  const ForwardHeads<T> tensors{HeadView<const T>(q, call.query_starts),
                                HeadView<const T>(k, call.key_starts), HeadView<const T>(v, call.key_starts),
                                HeadView<T>(out, call.query_starts),
                                LseView<T>(lse, call.B * call.H * call.Tq)};
  const int64_t tiles_per_head = tiles.max_query_tiles(), num_tiles = call.B * call.H * tiles_per_head;
  if (num_tiles == 0) return;
  Scratch scratch(Loop::scratch_bytes(call.d, call.dv));
  for (int64_t pass = 0; pass < tiles.passes(); ++pass) {
    parallel_rows(num_tiles, flops_per_task / tiles.flops_of_tile(), [&](int64_t begin, int64_t end) {
      const Scratch::Part part(scratch);
      Loop loop(LoopMemory<T>(part), tiles, tensors);
      int64_t flops = 0;
      for (int64_t index = begin; index < end; ++index) {
        const int64_t b = index / tiles_per_head / call.H, h = index / tiles_per_head % call.H;
        const int64_t next_head = (index + 1) / tiles_per_head;
        if (index + 1 < end && next_head > index / tiles_per_head && call.has_short_heads())
          loop.prefetch_head(next_head / call.H, next_head % call.H);
        // The causal tiles with most keys first.
        const int64_t tile_in_head = index % tiles_per_head,
                      n = call.causal ? tiles_per_head - 1 - tile_in_head : tile_in_head;
        if (n < tiles.query_tiles(b, h, pass)) flops += loop.run(tiles.query_tile(b, h, pass, n), pass > 0);
      }
      Count::add(flops);
    });
  }
}

}  // namespace heed::kernel
