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
  LseView<T> lse;  ///< logsumexp of row (b H + h) Tq + i
};

/// Computes out and lse of one tile of queries after the other, with working memory.
template <class T, class Tiles>
class ForwardLoop {
 public:
  using Queries = typename Tiles::Queries;

  /// Bytes of working memory.
  static int64_t scratch_bytes(int64_t d, int64_t dv) {
    const int64_t gathered = Tiles::scattered_rows ? 2 * padded_tile_size<T>(d) + padded_tile_size<T>(dv) : 0;
    return LoopMemory<T>::bytes(ForwardTile<T>::scratch(d, dv) + ForwardRow<T>::scratch(d, dv) + gathered +
                                padded_tile_size<T>(dv) + 2 * tile);
  }
  ForwardLoop(LoopMemory<T> memory, const Tiles& tiles, const ForwardHeads<T>& x)
      : tiles_(tiles),
        call_(tiles.call),
        x_(x),
        step_(memory.step),
        tile_(memory.arena.take(ForwardTile<T>::scratch(call_.d, call_.dv)), call_.d, call_.dv),
        row_(memory.arena.take(ForwardRow<T>::scratch(call_.d, call_.dv)), call_.d, call_.dv) {
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

  /// Computes one tile of queries [<= 64, d] against each tile of keys that they see. `merge`: merges the
  /// result with that of earlier passes. Returns the operations done.
  int64_t run(const Queries& queries, bool merge) {
    if (queries.alone) return run_row_by_row(queries, merge);
    const auto& [b, h, rows, alone] = static_cast<const QueryTile&>(queries);
    const Rows<T> q = rows_of<T>({x_.q.at(b, h, 0), x_.q.ld}, rows, call_.d, q_tile_);
    tile_.start(q.data, q.ld, rows.count, call_.scale_log2(), call_.sink_log2(h));
    if (merge) resume(queries);
    const Rows<T> k_head = key_rows(x_.k, queries), v_head = key_rows(x_.v, queries);
    int64_t flops = 0;
    tiles_.each_key_tile(queries, 0, call_.num_keys(b), step_, [&](const TileRows& keys) {
      const Rows<T> k = rows_of(k_head, keys, call_.d, k_tile_), v = rows_of(v_head, keys, call_.dv, v_tile_);
      flops += tile_.add_keys(k.data, k.ld, v.data, v.ld, step_.tile_mask, step_.modifiers);
    });
    finish(queries);
    return flops;
  }

  /// Prefetches the inputs and outputs of a head.
  void prefetch_head(int64_t b, int64_t h) const {
    fetch_rows(x_.q.at(b, h, 0), x_.q.ld, call_.Tq, call_.d);
    fetch_rows(x_.k.at(b, h / call_.group, 0), x_.k.ld, call_.num_keys(b), call_.d);
    fetch_rows(x_.v.at(b, h / call_.group, 0), x_.v.ld, call_.num_keys(b), call_.dv);
    fetch_rows(x_.out.at(b, h, 0), x_.out.ld, call_.Tq, call_.dv);
  }

 private:
  /// The rows of the head whose keys or values these queries attend to.
  Rows<T> key_rows(const HeadView<const T>& x, const QueryTile& of) const {
    return {x.at(of.b, of.h / call_.group, 0), x.ld};
  }
  /// The log-sum-exps of the head of these queries.
  LseView<T> lse_of(const QueryTile& of) const { return x_.lse.from((of.b * call_.H + of.h) * call_.Tq); }

  /// Continues from the output and log-sum-exps of the earlier passes.
  void resume(const QueryTile& of) {
    gather_rows<T>({x_.out.at(of.b, of.h, 0), x_.out.ld}, of.rows, call_.dv, out_tile_);
    for (int64_t i = 0; i < of.rows.count; ++i) lse_tile_.put(i, lse_of(of).at(of.rows[i]));
    tile_.resume(out_tile_, simd::padded<T>(call_.dv), lse_tile_);
  }

  /// Writes out and lse of the tile.
  void finish(const QueryTile& of) {
    const LseView<T> lse = lse_of(of);
    if (of.rows.gap == 1) {
      tile_.finish(x_.out.at(of.b, of.h, of.rows.first), x_.out.ld, lse.from(of.rows.first));
      return;
    }
    tile_.finish(out_tile_, call_.dv, lse_tile_);
    for (int64_t i = 0; i < of.rows.count; ++i) {
      simd::scaled(out_tile_ + i * call_.dv, call_.dv, T(1), x_.out.at(of.b, of.h, of.rows[i]));
      lse.put(of.rows[i], lse_tile_.at(i));
    }
  }

  /// Computes each query of the tile by itself, with its own keys.
  int64_t run_row_by_row(const Queries& queries, bool merge) {
    const int64_t b = queries.b, h = queries.h;
    const Rows<T> k = key_rows(x_.k, queries), v = key_rows(x_.v, queries);
    int64_t flops = 0;
    for (int64_t n = 0; n < queries.rows.count; ++n) {
      const int64_t i = queries.rows[n];
      row_.start(x_.q.at(b, h, i), call_.scale_log2(), call_.sink_log2(h));
      tiles_.each_key_list(queries, i, 0, call_.num_keys(b),
                           [&](KeyList keys, const T* bias, const T* keep_mask) {
                             flops += row_.add_keys(k, v, keys, bias, call_.softcap, keep_mask);
                           });
      T* out = x_.out.at(b, h, i);
      const LseView<T> lse = lse_of(queries).from(i);
      if (merge) {
        row_.finish(out_tile_, lse_tile_);
        lse.put(0, merge_rows(out, lse.at(0), out_tile_, lse_tile_.at(0)));
      } else {
        row_.finish(out, lse);
      }
    }
    return flops;
  }

  /// Merges the outputs [dv] of one query over two sets of keys into `out`; returns the log-sum-exp over
  /// both.
  RowLse<T> merge_rows(T* out, const RowLse<T>& lse, const T* other, const RowLse<T>& other_lse) const {
    if (other_lse.log == minus_infinity<T>) return lse;
    const MergedRows<T> merged(lse, other_lse);
    for (int64_t c = 0; c < call_.dv; ++c)
      out[c] = (out[c] * merged.factor_a + other[c] * merged.factor_b) / merged.total;
    return merged.lse;
  }

  const Tiles& tiles_;
  const Call<T>& call_;
  const ForwardHeads<T>& x_;
  StepParams<T>& step_;
  ForwardTile<T> tile_;
  ForwardRow<T> row_;
  // Gathered rows of a tile.
  T *q_tile_ = nullptr, *k_tile_ = nullptr, *v_tile_ = nullptr, *out_tile_;
  LseView<T> lse_tile_;
};

/// out[b, h, i, :] = sum_j softmax_j(score_ij) v_j and lse over the pairs of `tiles`, pass by pass. One task
/// is some tiles of queries of a head.
template <class T, class Tiles>
void attention_forward(const Tiles& tiles, const Tensor& q, const Tensor& k, const Tensor& v,
                       const Tensor& out, const Tensor& lse) {
  using Loop = ForwardLoop<T, Tiles>;
  const Call<T>& call = tiles.call;
  const ForwardHeads<T> x{HeadView<const T>(q), HeadView<const T>(k), HeadView<const T>(v), HeadView<T>(out),
                          LseView<T>(lse, call.B * call.H * call.Tq)};
  const int64_t tiles_per_head = tiles.max_query_tiles(), num_tiles = call.B * call.H * tiles_per_head;
  if (num_tiles == 0) return;
  Scratch scratch(Loop::scratch_bytes(call.d, call.dv));
  for (int64_t pass = 0; pass < tiles.passes(); ++pass) {
    parallel_rows(num_tiles, flops_per_task / tiles.flops_of_tile(), [&](int64_t begin, int64_t end) {
      const Scratch::Part part(scratch);
      Loop loop(LoopMemory<T>(part), tiles, x);
      int64_t flops = 0;
      for (int64_t t = begin; t < end; ++t) {
        const int64_t b = t / tiles_per_head / call.H, h = t / tiles_per_head % call.H;
        if (t + 1 < end && (t + 1) % tiles_per_head == 0 && call.has_short_heads())
          loop.prefetch_head((t + 1) / tiles_per_head / call.H, (t + 1) / tiles_per_head % call.H);
        // The longest causal tiles first.
        const int64_t n = call.causal ? tiles_per_head - 1 - t % tiles_per_head : t % tiles_per_head;
        if (n < tiles.query_tiles(h, pass)) flops += loop.run(tiles.query_tile(b, h, pass, n), pass > 0);
      }
      Count::add(flops);
    });
  }
}

}  // namespace heed::kernel
