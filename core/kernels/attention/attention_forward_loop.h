// The forward pass over all tiles, for dense and for pattern attention.
#pragma once

#include "heed/core/kernels/attention/attention_tiles.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {

/// What a forward pass reads and writes.
template <class T>
struct ForwardHeads {
  HeadView<const T> q, k, v;
  HeadView<T> out;
  RowLogs<T> lse;  ///< [B H Tq]
};

/// out and lse of one tile of queries after the other, with the memory for that.
template <class T, class Tiles>
class ForwardLoop {
 public:
  using Queries = typename Tiles::Queries;

  static int64_t scratch_bytes(int64_t d, int64_t dv) {
    const int64_t gathered = Tiles::scattered_rows ? 2 * padded_tile<T>(d) + padded_tile<T>(dv) : 0;
    return LoopMemory<T>::bytes(ForwardTile<T>::scratch(d, dv) + ForwardRow<T>::scratch(d, dv) + gathered +
                                padded_tile<T>(dv) + 2 * tile);
  }
  ForwardLoop(LoopMemory<T> memory, const Tiles& tiles, const ForwardHeads<T>& x)
      : tiles_(tiles),
        call_(tiles.call),
        x_(x),
        step_(memory.step),
        work_(memory.arena.take(ForwardTile<T>::scratch(call_.d, call_.dv)), call_.d, call_.dv),
        row_(memory.arena.take(ForwardRow<T>::scratch(call_.d, call_.dv)), call_.d, call_.dv) {
    BumpAllocator<T>& arena = memory.arena;
    if (Tiles::scattered_rows) {
      q_tile_ = arena.take(padded_tile<T>(call_.d));
      k_tile_ = arena.take(padded_tile<T>(call_.d));
      v_tile_ = arena.take(padded_tile<T>(call_.dv));
    }
    out_tile_ = arena.take(padded_tile<T>(call_.dv));
    lse_tile_.log = arena.take(tile);
    lse_tile_.rest = arena.take(tile);
  }

  /// The tile loop: queries [<= 64, d] against each tile of keys that they see. `adds`: joins the result with
  /// what earlier passes wrote. Returns the operations done.
  int64_t run(const Queries& queries, bool adds) {
    if (queries.alone) return one_by_one(queries, adds);
    const auto& [b, h, rows, alone] = static_cast<const QueryTile&>(queries);
    const Rows<T> q = rows_of<T>({x_.q.at(b, h, 0), x_.q.ld}, rows, call_.d, q_tile_);
    work_.start(q.data, q.ld, rows.count, call_.scale_log2(), call_.sink_of(h));
    if (adds) resume(queries);
    const Rows<T> k_head = keys_of(x_.k, queries), v_head = keys_of(x_.v, queries);
    int64_t flops = 0;
    tiles_.each_key_tile(queries, 0, call_.keys_of(b), step_, [&](const TileRows& keys) {
      const Rows<T> k = rows_of(k_head, keys, call_.d, k_tile_), v = rows_of(v_head, keys, call_.dv, v_tile_);
      flops += work_.keys(k.data, k.ld, v.data, v.ld, step_.tile_mask, step_.modifiers);
    });
    finish(queries);
    return flops;
  }

  /// Prefetches the inputs of a head.
  void fetch_head(int64_t b, int64_t h) const {
    fetch_rows(x_.q.at(b, h, 0), x_.q.ld, call_.Tq, call_.d);
    fetch_rows(x_.k.at(b, h / call_.group, 0), x_.k.ld, call_.keys_of(b), call_.d);
    fetch_rows(x_.v.at(b, h / call_.group, 0), x_.v.ld, call_.keys_of(b), call_.dv);
    fetch_rows(x_.out.at(b, h, 0), x_.out.ld, call_.Tq, call_.dv);
  }

 private:
  Rows<T> keys_of(const HeadView<const T>& x, const QueryTile& of) const {
    return {x.at(of.b, of.h / call_.group, 0), x.ld};
  }
  RowLogs<T> lse_of(const QueryTile& of) const { return x_.lse.from((of.b * call_.H + of.h) * call_.Tq); }

  /// Continues from the output and log sums of the earlier passes.
  void resume(const QueryTile& of) {
    gather_rows<T>({x_.out.at(of.b, of.h, 0), x_.out.ld}, of.rows, call_.dv, out_tile_);
    for (int64_t i = 0; i < of.rows.count; ++i) lse_tile_.put(i, lse_of(of).at(of.rows[i]));
    work_.resume(out_tile_, simd::padded<T>(call_.dv), lse_tile_);
  }

  /// Writes out and lse of the tile.
  void finish(const QueryTile& of) {
    const RowLogs<T> lse = lse_of(of);
    if (of.rows.gap == 1) {
      work_.finish(x_.out.at(of.b, of.h, of.rows.first), x_.out.ld, lse.from(of.rows.first));
      return;
    }
    work_.finish(out_tile_, call_.dv, lse_tile_);
    for (int64_t i = 0; i < of.rows.count; ++i) {
      simd::scaled(out_tile_ + i * call_.dv, call_.dv, T(1), x_.out.at(of.b, of.h, of.rows[i]));
      lse.put(of.rows[i], lse_tile_.at(i));
    }
  }

  /// Each query of the tile against its own keys.
  int64_t one_by_one(const Queries& queries, bool adds) {
    const int64_t b = queries.b, h = queries.h;
    const Rows<T> k = keys_of(x_.k, queries), v = keys_of(x_.v, queries);
    int64_t flops = 0;
    for (int64_t n = 0; n < queries.rows.count; ++n) {
      const int64_t i = queries.rows[n];
      row_.start(x_.q.at(b, h, i), call_.scale_log2(), call_.sink_of(h));
      tiles_.each_pick(queries, i, 0, call_.keys_of(b),
                       [&](Picked picked, const T* bias, const T* keep_mask) {
                         flops += row_.keys(k, v, picked, bias, call_.cap, keep_mask);
                       });
      T* out = x_.out.at(b, h, i);
      const RowLogs<T> lse = lse_of(queries).from(i);
      if (adds) {
        row_.finish(out_tile_, lse_tile_);
        lse.put(0, merge(out, lse.at(0), out_tile_, lse_tile_.at(0)));
      } else {
        row_.finish(out, lse);
      }
    }
    return flops;
  }

  /// Joins the outputs [dv] that two sets of keys gave one query into `out`; returns the log of the joint
  /// sum.
  RowLog<T> merge(T* out, const RowLog<T>& lse, const T* more, const RowLog<T>& more_lse) const {
    if (more_lse.log == -infinity<T>) return lse;
    const JoinedRows<T> both(lse, more_lse);
    for (int64_t c = 0; c < call_.dv; ++c)
      out[c] = (out[c] * both.first + more[c] * both.second) / both.total;
    return both.log;
  }

  const Tiles& tiles_;
  const Call<T>& call_;
  const ForwardHeads<T>& x_;
  StepParams<T>& step_;
  ForwardTile<T> work_;
  ForwardRow<T> row_;
  // Rows of a tile that are gathered.
  T *q_tile_ = nullptr, *k_tile_ = nullptr, *v_tile_ = nullptr, *out_tile_;
  RowLogs<T> lse_tile_;
};

/// out[b, h, i, :] = sum_j softmax_j(score_ij) v_j and lse over the pairs of `tiles`, pass by pass. One task
/// is some tiles of queries of a head.
template <class T, class Tiles>
void attention_forward(const Tiles& tiles, const Tensor& q, const Tensor& k, const Tensor& v,
                       const Tensor& out, const Tensor& lse) {
  using Loop = ForwardLoop<T, Tiles>;
  const Call<T>& call = tiles.call;
  const ForwardHeads<T> x{HeadView<const T>(q), HeadView<const T>(k), HeadView<const T>(v), HeadView<T>(out),
                          RowLogs<T>(lse, call.B * call.H * call.Tq)};
  const int64_t most = tiles.max_query_tiles(), all = call.B * call.H * most;
  if (all == 0) return;
  Scratch scratch(Loop::scratch_bytes(call.d, call.dv));
  for (int64_t pass = 0; pass < tiles.passes(); ++pass) {
    parallel_rows(all, flops_per_task / tiles.flops_of_tile(), [&](int64_t begin, int64_t end) {
      const Scratch::Part part(scratch);
      Loop loop(LoopMemory<T>(part), tiles, x);
      int64_t flops = 0;
      for (int64_t at = begin; at < end; ++at) {
        const int64_t b = at / most / call.H, h = at / most % call.H;
        if (at + 1 < end && (at + 1) % most == 0 && call.short_heads())
          loop.fetch_head((at + 1) / most / call.H, (at + 1) / most % call.H);
        const int64_t n = call.causal ? most - 1 - at % most : at % most;  // the longest causal tiles first
        if (n < tiles.query_tiles(h, pass)) flops += loop.run(tiles.query_tile(b, h, pass, n), pass > 0);
      }
      Count::add(flops);
    });
  }
}

}  // namespace heed::kernel
