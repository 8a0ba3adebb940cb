// The backward pass over all tiles, for dense and for pattern attention.
#pragma once

#include "heed/core/kernels/attention/attention_backward_tile.h"
#include "heed/core/kernels/attention/attention_key_runs.h"
#include "heed/core/kernels/attention/attention_tiles.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {

/// Keys or values of one run [keys, width] as rows of whole vectors, and the sums of their gradients.
template <class T>
struct RunRows {
  int64_t width;
  bool direct;  ///< the sums are the rows of the gradient
  T *copy, *own_sums;
  Rows<T> rows{};
  SumRows<T> sums{};
  int64_t zeroed = 0;  ///< rows of sums

  static int64_t size(int64_t keys, int64_t width) {
    return BumpAllocator<T>::rounded(keys * simd::padded<T>(width));
  }
  /// Memory for runs of at most `keys` keys. `adds_directly`: where rows are whole vectors, adds to the
  /// gradient itself; else to sums that lie together.
  RunRows(BumpAllocator<T>& arena, int64_t keys, int64_t columns, bool adds_directly) : width(columns) {
    const bool is_whole = simd::padded<T>(width) == width;
    direct = adds_directly && is_whole;
    copy = arena.take(is_whole ? 0 : size(keys, width));
    own_sums = arena.take(direct ? 0 : size(keys, width));
  }
  void begin(const T* x, int64_t ld, SumRows<T> gradient, int64_t keys) {
    rows = whole_rows(x, ld, keys, width, copy);
    sums = direct ? gradient : SumRows<T>{own_sums, simd::padded<T>(width)};
    zeroed = 0;
  }
  /// Sets sums before row `end` to zero that are not in use yet: just before their use, while they stay in
  /// the cache.
  void reach(int64_t end) {
    if (end <= zeroed) return;
    zero_rows(sums.row(zeroed), sums.ld, end - zeroed, simd::padded<T>(width));
    zeroed = end;
  }
  /// gradient [keys, width] = factor times the sums.
  void end(SumRows<T> gradient, int64_t keys, T factor) {
    reach(keys);
    for (int64_t r = 0; !direct && r < keys; ++r) simd::scaled(sums.row(r), width, factor, gradient.row(r));
  }
};

/// dk and dv of one run of keys after the other and what it gives to dq, with the memory for that.
template <class T, class Tiles>
class BackwardLoop {
 public:
  using Queries = typename Tiles::Queries;

  /// For runs of at most `keys` keys.
  static int64_t scratch_bytes(int64_t keys, int64_t d, int64_t dv) {
    const int64_t gathered = 4 * padded_tile<T>(d) + 4 * padded_tile<T>(dv) + 2 * tile;
    return LoopMemory<T>::bytes(2 * RunRows<T>::size(keys, d) + 2 * RunRows<T>::size(keys, dv) +
                                BackTile<T>::scratch(d, dv) + BackRow<T>::scratch(d, dv) +
                                (Tiles::scattered_rows ? gathered : 0));
  }
  BackwardLoop(LoopMemory<T> memory, const Tiles& tiles, const BackwardHeads<T>& x, const KeyRuns<T>& runs)
      : tiles_(tiles),
        call_(tiles.call),
        x_(x),
        runs_(runs),
        step_(memory.step),
        k_(memory.arena, runs.longest(), call_.d, Tiles::scattered_rows),
        v_(memory.arena, runs.longest(), call_.dv, Tiles::scattered_rows),
        work_(memory.arena.take(BackTile<T>::scratch(call_.d, call_.dv)), call_.d, call_.dv),
        row_(memory.arena.take(BackRow<T>::scratch(call_.d, call_.dv)), call_.d, call_.dv) {
    if (!Tiles::scattered_rows) return;
    const int64_t size_d = padded_tile<T>(call_.d), size_dv = padded_tile<T>(call_.dv);
    for (T** one : {&q_tile_, &k_tile_, &dk_tile_, &dq_tile_}) *one = memory.arena.take(size_d);
    for (T** one : {&v_tile_, &dv_tile_, &out_tile_, &dout_tile_}) *one = memory.arena.take(size_dv);
    for (T** one : {&lse_tile_.log, &lse_tile_.rest}) *one = memory.arena.take(tile);
    std::fill_n(dk_tile_, size_d, T(0));
    std::fill_n(dv_tile_, size_dv, T(0));
  }

  /// One run of the keys of batch row b and key head `shared`: computes the weights of every query with them
  /// again. Returns the operations done.
  int64_t run(int64_t index, int64_t b, int64_t shared) {
    first_ = index * runs_.length;
    last_ = std::max(first_, std::min(first_ + runs_.length, call_.keys_of(b)));
    dq_ = runs_.dq(index);
    const int64_t keys = last_ - first_, past = std::min(runs_.length, call_.Tk - first_) - keys;
    const SumRows<T> dk{x_.dk.at(b, shared, first_), x_.dk.ld}, dv{x_.dv.at(b, shared, first_), x_.dv.ld};
    k_.begin(x_.k.at(b, shared, first_), x_.k.ld, dk, keys);
    v_.begin(x_.v.at(b, shared, first_), x_.v.ld, dv, keys);
    int64_t flops = 0;
    for (int64_t h = shared * call_.group; h < (shared + 1) * call_.group; ++h) {
      diagonals_ = runs_.diagonals(index, b, h);
      for (int64_t pass = 0; pass < tiles_.passes(); ++pass) {
        for (int64_t n = 0; n < tiles_.query_tiles(h, pass); ++n)
          flops += add(tiles_.query_tile(b, h, pass, n), pass > 0);
      }
    }
    k_.end(dk, keys, last_scale());
    v_.end(dv, keys, T(1));
    zero_rows(dk.row(keys), dk.ld, past, call_.d);
    zero_rows(dv.row(keys), dv.ld, past, call_.dv);
    return flops;
  }

  /// Prefetches the inputs and outputs of a head that shares its keys with no other.
  void fetch_head(int64_t b, int64_t h) const {
    const int64_t keys = call_.keys_of(b);
    fetch_rows(x_.q.at(b, h, 0), x_.q.ld, call_.Tq, call_.d);
    fetch_rows(x_.k.at(b, h, 0), x_.k.ld, keys, call_.d);
    fetch_rows(x_.v.at(b, h, 0), x_.v.ld, keys, call_.dv);
    fetch_rows(x_.out.at(b, h, 0), x_.out.ld, call_.Tq, call_.dv);
    fetch_rows(x_.dout.at(b, h, 0), x_.dout.ld, call_.Tq, call_.dv);
    fetch_rows(x_.dq.at(b, h, 0), x_.dq.ld, call_.Tq, call_.d);
    fetch_rows(x_.dk.at(b, h, 0), x_.dk.ld, keys, call_.d);
    fetch_rows(x_.dv.at(b, h, 0), x_.dv.ld, keys, call_.dv);
  }

 private:
  // Where sums are dk itself, its scale has to be in what is added; else it is applied to the sums.
  T first_scale() const { return Tiles::scattered_rows ? call_.scale : T(1); }
  T last_scale() const { return Tiles::scattered_rows ? T(1) : call_.scale; }

  /// The tile loop: queries [<= 64, d] against each tile of the run's keys that they see. Adds to dk and dv
  /// and writes dq. `adds`: adds to the dq that earlier passes wrote.
  int64_t add(const Queries& queries, bool adds) {
    const TileRows& rows = queries.rows;
    if (!tiles_.sees(queries, first_, last_)) {
      for (int64_t i = 0; !adds && i < rows.count; ++i)
        std::fill_n(dq_.at(queries.b, queries.h, rows[i]), call_.d, T(0));
      return 0;
    }
    if constexpr (Tiles::scattered_rows) {
      if (queries.alone) return one_by_one(queries, adds);
    }
    start(queries);
    int64_t flops = 0;
    tiles_.each_key_tile(queries, first_, last_, step_, [&](const TileRows& keys) {
      T* diagonals =
          diagonals_ == nullptr ? nullptr : diagonals_ + rows.first - (first_ + keys.first) + call_.Tk - 1;
      k_.reach(keys[keys.count - 1] + 1);
      v_.reach(keys[keys.count - 1] + 1);
      const bool direct = in_place<T>(keys.gap, std::max(k_.sums.ld, v_.sums.ld));
      const auto sums = [&](SumRows<T> all, int64_t width, T* gathered) {
        return direct ? SumRows<T>{all.row(keys.first), keys.gap * all.ld}
                      : SumRows<T>{gathered, simd::padded<T>(width)};
      };
      const SumRows<T> dk = sums(k_.sums, call_.d, dk_tile_), dv = sums(v_.sums, call_.dv, dv_tile_);
      flops += work_.keys(rows_of(k_.rows, keys, call_.d, k_tile_), rows_of(v_.rows, keys, call_.dv, v_tile_),
                          step_.tile_mask, step_.modifiers, dk, dv, diagonals);
      if (direct) return;
      scatter_rows(dk_tile_, keys, dk.ld, k_.sums);
      scatter_rows(dv_tile_, keys, dv.ld, v_.sums);
    });
    finish(queries, adds);
    return flops;
  }

  void start(const Queries& of) {
    const auto rows = [&](const HeadView<const T>& x, int64_t width, T* copy) {
      return rows_of<T>({x.at(of.b, of.h, 0), x.ld}, of.rows, width, copy);
    };
    const Rows<T> q = rows(x_.q, call_.d, q_tile_), dout = rows(x_.dout, call_.dv, dout_tile_),
                  out = rows(x_.out, call_.dv, out_tile_);
    RowLogs<T> lse = x_.lse.from((of.b * call_.H + of.h) * call_.Tq);
    if (of.rows.gap == 1) {
      lse = lse.from(of.rows.first);
    } else {
      for (int64_t i = 0; i < of.rows.count; ++i) lse_tile_.put(i, lse.at(of.rows[i]));
      lse = lse_tile_;
    }
    work_.start(q.data, q.ld, dout.data, dout.ld, out.data, out.ld, lse, of.rows.count, call_.scale_log2(),
                first_scale());
  }

  void finish(const Queries& of, bool adds) {
    if (of.rows.gap > 0 && !adds) {
      work_.finish(dq_.at(of.b, of.h, of.rows.first), of.rows.gap * dq_.ld, last_scale());
      return;
    }
    work_.finish(dq_tile_, call_.d, last_scale());
    for (int64_t i = 0; i < of.rows.count; ++i)
      put(dq_tile_ + i * call_.d, dq_.at(of.b, of.h, of.rows[i]), adds);
  }

  /// Each query of the tile against its own keys.
  int64_t one_by_one(const Queries& queries, bool adds) {
    const int64_t b = queries.b, h = queries.h;
    int64_t flops = 0;
    for (int64_t n = 0; n < queries.rows.count; ++n) {
      const int64_t i = queries.rows[n];
      row_.start(x_.q.at(b, h, i), x_.dout.at(b, h, i), x_.out.at(b, h, i),
                 x_.lse.at((b * call_.H + h) * call_.Tq + i), call_.scale_log2(), first_scale());
      tiles_.each_pick(queries, i, first_, last_, [&](Picked picked, const T*, const T* keep_mask) {
        k_.reach(picked.index[picked.count - 1] + 1);
        v_.reach(picked.index[picked.count - 1] + 1);
        flops += row_.keys(k_.rows, v_.rows, picked, k_.sums, v_.sums, keep_mask);
      });
      row_.finish(dq_tile_);
      put(dq_tile_, dq_.at(b, h, i), adds);
    }
    return flops;
  }

  void put(const T* dq, T* to, bool adds) const {
    if (!adds) return simd::scaled(dq, call_.d, T(1), to);
    for (int64_t c = 0; c < call_.d; ++c) to[c] += dq[c];
  }

  const Tiles& tiles_;
  const Call<T>& call_;
  const BackwardHeads<T>& x_;
  const KeyRuns<T>& runs_;
  StepParams<T>& step_;
  // The run: its keys and values, which are keys [first_, last_), and where it writes dq and drelative.
  RunRows<T> k_, v_;
  int64_t first_ = 0, last_ = 0;
  HeadView<T> dq_;
  T* diagonals_ = nullptr;
  BackTile<T> work_;
  BackRow<T> row_;
  // Gathered rows of a tile.
  T *q_tile_ = nullptr, *k_tile_ = nullptr, *dk_tile_ = nullptr, *dq_tile_ = nullptr;
  T *v_tile_ = nullptr, *dv_tile_ = nullptr, *out_tile_ = nullptr, *dout_tile_ = nullptr;
  RowLogs<T> lse_tile_;
};

/// dq, dk, dv and drelative over the pairs of `tiles`. One task is some runs of keys of a key head.
template <class T, class Tiles>
void attention_backward(const Tiles& tiles, const AttentionBackTensors& t) {
  using Loop = BackwardLoop<T, Tiles>;
  const Call<T>& call = tiles.call;
  const BackwardHeads<T> x{t};
  const int64_t heads = call.B * x.kv_heads;
  const KeyRuns<T> runs(call, x, tiles.key_runs(std::max<int64_t>(1, heads)));
  Scratch scratch(Loop::scratch_bytes(runs.longest(), call.d, call.dv));
  const int64_t each = 2 * call.group * tiles.flops_of_head() / runs.count;
  parallel_rows(heads * runs.count, flops_per_task / std::max<int64_t>(1, each),
                [&](int64_t begin, int64_t end) {
                  const Scratch::Part part(scratch);
                  Loop loop(LoopMemory<T>(part), tiles, x, runs);
                  int64_t flops = 0;
                  for (int64_t at = begin; at < end; ++at) {
                    if (at + 1 < end && runs.count == 1 && call.group == 1 && call.short_heads())
                      loop.fetch_head((at + 1) / call.H, (at + 1) % call.H);
                    flops += loop.run(at / heads, at % heads / x.kv_heads, at % x.kv_heads);
                  }
                  Count::add(flops);
                });
  runs.add_up();
}

}  // namespace heed::kernel
