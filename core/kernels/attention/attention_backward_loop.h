// The backward pass over all tiles on the CPU, for dense and for pattern attention.
#pragma once

#include "heed/core/kernels/attention/attention_backward_tile.h"
#include "heed/core/kernels/attention/attention_tiles.h"
#include "heed/core/kernels/attention/head_view.h"
#include "heed/core/memory/storage.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {

/// The tensors of a backward pass as rows of heads.
template <class T>
struct BackwardHeads {
  const AttentionBackTensors& t;
  HeadView<const T> q{t.q}, k{t.k}, v{t.v}, out{t.out}, dout{t.dout};
  HeadView<T> dq{t.dq}, dk{t.dk}, dv{t.dv};
  LseView<T> lse{t.lse, t.q.extent(0) * t.q.extent(1) * t.q.extent(2)};
  T* drelative = t.drelative ? t.drelative.template data<T>() : nullptr;  ///< null: not wanted
  int64_t kv_heads = t.k.extent(1);
};

/// Splits the keys of each head into runs, several where heads are too few for all threads. A run has sums of
/// its own of dq [B, H, Tq, d] and of the diagonals of drelative [B, H, Tq + Tk - 1]; they are added in
/// order, so the number of threads changes no bit.
template <class T>
class KeyRuns {
 public:
  int64_t length, count;  ///< keys of a run, and runs of a head

  /// At most `max_count` runs of a head, of at least 256 keys each.
  KeyRuns(const Call<T>& call, const BackwardHeads<T>& x, int64_t max_count)
      : length(std::max(4 * tile, ceil_div(ceil_div(call.Tk, std::max<int64_t>(1, max_count)), tile) * tile)),
        count(std::max<int64_t>(1, ceil_div(call.Tk, length))),
        call_(call),
        x_(x),
        heads_(call.B * call.H),
        num_diagonals_(call.Tq + call.Tk - 1),
        dq_(bytes(count > 1 ? count * heads_ * call.Tq * call.d : 0), Device::cpu),
        diagonals_(bytes(x.drelative != nullptr ? count * heads_ * num_diagonals_ : 0), Device::cpu) {}

  /// Number of keys of the longest run, at least one.
  int64_t max_length() const { return std::min(length, std::max<int64_t>(call_.Tk, 1)); }
  /// Where a run writes dq.
  HeadView<T> dq(int64_t run) const {
    if (count == 1) return x_.dq;
    HeadView<T> view;
    view.ld = call_.d;
    view.head = call_.Tq * view.ld;
    view.batch = call_.H * view.head;
    view.data = static_cast<T*>(dq_.data()) + run * call_.B * view.batch;
    return view;
  }
  /// Sums [Tq + Tk - 1] of a run for the diagonals of a head, set to zero; null: drelative is not wanted.
  T* diagonals(int64_t run, int64_t b, int64_t h) const {
    if (x_.drelative == nullptr) return nullptr;
    T* sums = static_cast<T*>(diagonals_.data()) + (run * heads_ + b * call_.H + h) * num_diagonals_;
    std::fill_n(sums, num_diagonals_, T(0));
    return sums;
  }

  /// Writes dq and drelative: the sums over the runs, in order.
  void sum_runs() const {
    if (x_.drelative != nullptr) std::fill_n(x_.drelative, call_.H * num_diagonals_, T(0));
    for (int64_t row = 0; x_.drelative != nullptr && row < count * heads_; ++row) {
      const T* sums = static_cast<const T*>(diagonals_.data()) + row * num_diagonals_;
      T* drelative = x_.drelative + row % call_.H * num_diagonals_;
      for (int64_t n = 0; n < num_diagonals_; ++n) drelative[n] += sums[n];
    }
    if (count == 1) return;
    const int64_t rows_per_task = ceil_div(light_grain, std::max<int64_t>(call_.d, 1));
    parallel_rows(heads_ * call_.Tq, rows_per_task, [&](int64_t begin, int64_t end) {
      const T* run_sums = static_cast<const T*>(dq_.data());
      for (int64_t row = begin; row < end; ++row) {
        T* dq = x_.dq.at(row / call_.Tq / call_.H, row / call_.Tq % call_.H, row % call_.Tq);
        std::copy_n(run_sums + row * call_.d, call_.d, dq);
        for (int64_t run = 1; run < count; ++run) {
          const T* addend = run_sums + (run * heads_ * call_.Tq + row) * call_.d;
          for (int64_t c = 0; c < call_.d; ++c) dq[c] += addend[c];
        }
      }
    });
  }

 private:
  static int64_t bytes(int64_t numbers) { return static_cast<int64_t>(sizeof(T)) * numbers; }

  const Call<T>& call_;
  const BackwardHeads<T>& x_;
  int64_t heads_, num_diagonals_;
  Storage dq_, diagonals_;
};

/// Keys or values of one run [keys, width] as rows of whole vectors, and the sums of their gradients.
template <class T>
struct RunRows {
  int64_t width;
  bool sums_in_gradient;  ///< the sums are the rows of the gradient tensor
  T *padded_copy, *own_sums;
  Rows<T> rows{};
  SumRows<T> sums{};
  int64_t num_zeroed = 0;  ///< rows of sums that are set to zero so far

  static int64_t size(int64_t keys, int64_t width) {
    return BumpAllocator<T>::rounded(keys * simd::padded<T>(width));
  }
  /// Takes memory for runs of at most `max_keys` keys. `may_use_gradient`: where rows are whole vectors, sums
  /// are in the gradient tensor; else in working memory.
  RunRows(BumpAllocator<T>& arena, int64_t max_keys, int64_t columns, bool may_use_gradient)
      : width(columns) {
    const bool is_whole = simd::padded<T>(width) == width;
    sums_in_gradient = may_use_gradient && is_whole;
    padded_copy = arena.take(is_whole ? 0 : size(max_keys, width));
    own_sums = arena.take(sums_in_gradient ? 0 : size(max_keys, width));
  }
  /// Begins the run x [keys, width] with its gradient.
  void begin(const T* x, int64_t ld, SumRows<T> gradient, int64_t keys) {
    rows = whole_rows(x, ld, keys, width, padded_copy);
    sums = sums_in_gradient ? gradient : SumRows<T>{own_sums, simd::padded<T>(width)};
    num_zeroed = 0;
  }
  /// Sets sums before row `end` to zero that are not in use yet: just before their use, while they stay in
  /// the cache.
  void zero_sums_before(int64_t end) {
    if (end <= num_zeroed) return;
    zero_rows(sums.row(num_zeroed), sums.ld, end - num_zeroed, simd::padded<T>(width));
    num_zeroed = end;
  }
  /// Writes gradient [keys, width] = factor times the sums.
  void finish(SumRows<T> gradient, int64_t keys, T factor) {
    zero_sums_before(keys);
    for (int64_t r = 0; !sums_in_gradient && r < keys; ++r)
      simd::scaled(sums.row(r), width, factor, gradient.row(r));
  }
};

/// Computes dk and dv of one run of keys after the other, and what the run adds to dq, with working memory.
template <class T, class Tiles>
class BackwardLoop {
 public:
  using Queries = typename Tiles::Queries;

  /// Bytes of working memory for runs of at most `keys` keys.
  static int64_t scratch_bytes(int64_t keys, int64_t d, int64_t dv) {
    const int64_t gathered = 4 * padded_tile_size<T>(d) + 4 * padded_tile_size<T>(dv) + 2 * tile;
    return LoopMemory<T>::bytes(2 * RunRows<T>::size(keys, d) + 2 * RunRows<T>::size(keys, dv) +
                                BackwardTile<T>::scratch(d, dv) + BackwardRow<T>::scratch(d, dv) +
                                (Tiles::scattered_rows ? gathered : 0));
  }
  BackwardLoop(LoopMemory<T> memory, const Tiles& tiles, const BackwardHeads<T>& x, const KeyRuns<T>& runs)
      : tiles_(tiles),
        call_(tiles.call),
        x_(x),
        runs_(runs),
        step_(memory.step),
        k_(memory.arena, runs.max_length(), call_.d, Tiles::scattered_rows),
        v_(memory.arena, runs.max_length(), call_.dv, Tiles::scattered_rows),
        tile_(memory.arena.take(BackwardTile<T>::scratch(call_.d, call_.dv)), call_.d, call_.dv),
        row_(memory.arena.take(BackwardRow<T>::scratch(call_.d, call_.dv)), call_.d, call_.dv) {
    if (!Tiles::scattered_rows) return;
    const int64_t size_d = padded_tile_size<T>(call_.d), size_dv = padded_tile_size<T>(call_.dv);
    for (T** buffer : {&q_tile_, &k_tile_, &dk_tile_, &dq_tile_}) *buffer = memory.arena.take(size_d);
    for (T** buffer : {&v_tile_, &dv_tile_, &out_tile_, &dout_tile_}) *buffer = memory.arena.take(size_dv);
    for (T** buffer : {&lse_tile_.log, &lse_tile_.residual}) *buffer = memory.arena.take(tile);
    std::fill_n(dk_tile_, size_d, T(0));
    std::fill_n(dv_tile_, size_dv, T(0));
  }

  /// Computes run `index` of the keys of batch row b and key head `kv_head`, with the weights of all queries
  /// computed again. Returns the operations done.
  int64_t run(int64_t index, int64_t b, int64_t kv_head) {
    key_begin_ = index * runs_.length;
    key_end_ = std::max(key_begin_, std::min(key_begin_ + runs_.length, call_.num_keys(b)));
    dq_ = runs_.dq(index);
    const int64_t keys = key_end_ - key_begin_,
                  padding = std::min(runs_.length, call_.Tk - key_begin_) - keys;  // keys past the length
    const SumRows<T> dk{x_.dk.at(b, kv_head, key_begin_), x_.dk.ld},
        dv{x_.dv.at(b, kv_head, key_begin_), x_.dv.ld};
    k_.begin(x_.k.at(b, kv_head, key_begin_), x_.k.ld, dk, keys);
    v_.begin(x_.v.at(b, kv_head, key_begin_), x_.v.ld, dv, keys);
    int64_t flops = 0;
    for (int64_t h = kv_head * call_.group; h < (kv_head + 1) * call_.group; ++h) {
      diagonals_ = runs_.diagonals(index, b, h);
      for (int64_t pass = 0; pass < tiles_.passes(); ++pass) {
        for (int64_t n = 0; n < tiles_.query_tiles(h, pass); ++n)
          flops += add_queries(tiles_.query_tile(b, h, pass, n), pass > 0);
      }
    }
    k_.finish(dk, keys, final_scale());
    v_.finish(dv, keys, T(1));
    zero_rows(dk.row(keys), dk.ld, padding, call_.d);
    zero_rows(dv.row(keys), dv.ld, padding, call_.dv);
    return flops;
  }

  /// Prefetches the inputs and outputs of a head that shares its keys with no other.
  void prefetch_head(int64_t b, int64_t h) const {
    const int64_t keys = call_.num_keys(b);
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
  // Where sums are in dk itself, its scale has to be in the addends; else it is applied to the sums.
  T addend_scale() const { return Tiles::scattered_rows ? call_.scale : T(1); }
  T final_scale() const { return Tiles::scattered_rows ? T(1) : call_.scale; }

  /// Adds the gradients of queries [<= 64, d] with each tile of the run's keys that they see to dk and dv,
  /// and writes dq. `accumulate`: adds to the dq of earlier passes. Returns the operations done.
  int64_t add_queries(const Queries& queries, bool accumulate) {
    const TileRows& rows = queries.rows;
    if (!tiles_.sees(queries, key_begin_, key_end_)) {
      for (int64_t i = 0; !accumulate && i < rows.count; ++i)
        std::fill_n(dq_.at(queries.b, queries.h, rows[i]), call_.d, T(0));
      return 0;
    }
    if constexpr (Tiles::scattered_rows) {
      if (queries.alone) return add_row_by_row(queries, accumulate);
    }
    start(queries);
    int64_t flops = 0;
    tiles_.each_key_tile(queries, key_begin_, key_end_, step_, [&](const TileRows& keys) {
      T* diagonals = diagonals_ == nullptr
                         ? nullptr
                         : diagonals_ + rows.first - (key_begin_ + keys.first) + call_.Tk - 1;
      k_.zero_sums_before(keys[keys.count - 1] + 1);
      v_.zero_sums_before(keys[keys.count - 1] + 1);
      const bool sums_in_place = in_place<T>(keys.gap, std::max(k_.sums.ld, v_.sums.ld));
      const auto tile_sums = [&](SumRows<T> run_sums, int64_t width, T* gathered) {
        return sums_in_place ? SumRows<T>{run_sums.row(keys.first), keys.gap * run_sums.ld}
                             : SumRows<T>{gathered, simd::padded<T>(width)};
      };
      const SumRows<T> dk = tile_sums(k_.sums, call_.d, dk_tile_),
                       dv = tile_sums(v_.sums, call_.dv, dv_tile_);
      flops +=
          tile_.add_keys(rows_of(k_.rows, keys, call_.d, k_tile_), rows_of(v_.rows, keys, call_.dv, v_tile_),
                         step_.tile_mask, step_.modifiers, dk, dv, diagonals);
      if (sums_in_place) return;
      scatter_rows(dk_tile_, keys, dk.ld, k_.sums);
      scatter_rows(dv_tile_, keys, dv.ld, v_.sums);
    });
    finish(queries, accumulate);
    return flops;
  }

  /// Begins a tile of queries.
  void start(const Queries& of) {
    const auto rows = [&](const HeadView<const T>& x, int64_t width, T* copy) {
      return rows_of<T>({x.at(of.b, of.h, 0), x.ld}, of.rows, width, copy);
    };
    const Rows<T> q = rows(x_.q, call_.d, q_tile_), dout = rows(x_.dout, call_.dv, dout_tile_),
                  out = rows(x_.out, call_.dv, out_tile_);
    LseView<T> lse = x_.lse.from((of.b * call_.H + of.h) * call_.Tq);
    if (of.rows.gap == 1) {
      lse = lse.from(of.rows.first);
    } else {
      for (int64_t i = 0; i < of.rows.count; ++i) lse_tile_.put(i, lse.at(of.rows[i]));
      lse = lse_tile_;
    }
    tile_.start(q.data, q.ld, dout.data, dout.ld, out.data, out.ld, lse, of.rows.count, call_.scale_log2(),
                addend_scale());
  }

  /// Writes the dq of a tile of queries, or adds it to that of earlier passes.
  void finish(const Queries& of, bool accumulate) {
    if (of.rows.gap > 0 && !accumulate) {
      tile_.finish(dq_.at(of.b, of.h, of.rows.first), of.rows.gap * dq_.ld, final_scale());
      return;
    }
    tile_.finish(dq_tile_, call_.d, final_scale());
    for (int64_t i = 0; i < of.rows.count; ++i)
      put_row(dq_tile_ + i * call_.d, dq_.at(of.b, of.h, of.rows[i]), accumulate);
  }

  /// Adds the gradients of each query of the tile by itself, with its own keys.
  int64_t add_row_by_row(const Queries& queries, bool accumulate) {
    const int64_t b = queries.b, h = queries.h;
    int64_t flops = 0;
    for (int64_t n = 0; n < queries.rows.count; ++n) {
      const int64_t i = queries.rows[n];
      row_.start(x_.q.at(b, h, i), x_.dout.at(b, h, i), x_.out.at(b, h, i),
                 x_.lse.at((b * call_.H + h) * call_.Tq + i), call_.scale_log2(), addend_scale());
      tiles_.each_key_list(queries, i, key_begin_, key_end_, [&](KeyList keys, const T*, const T* keep_mask) {
        k_.zero_sums_before(keys.index[keys.count - 1] + 1);
        v_.zero_sums_before(keys.index[keys.count - 1] + 1);
        flops += row_.add_keys(k_.rows, v_.rows, keys, k_.sums, v_.sums, keep_mask);
      });
      row_.finish(dq_tile_);
      put_row(dq_tile_, dq_.at(b, h, i), accumulate);
    }
    return flops;
  }

  /// to [d] = or += dq.
  void put_row(const T* dq, T* to, bool accumulate) const {
    if (!accumulate) return simd::scaled(dq, call_.d, T(1), to);
    for (int64_t c = 0; c < call_.d; ++c) to[c] += dq[c];
  }

  const Tiles& tiles_;
  const Call<T>& call_;
  const BackwardHeads<T>& x_;
  const KeyRuns<T>& runs_;
  StepParams<T>& step_;
  // The run: keys [key_begin_, key_end_), and where it writes dq and drelative.
  RunRows<T> k_, v_;
  int64_t key_begin_ = 0, key_end_ = 0;
  HeadView<T> dq_;
  T* diagonals_ = nullptr;
  BackwardTile<T> tile_;
  BackwardRow<T> row_;
  // Gathered rows of a tile.
  T *q_tile_ = nullptr, *k_tile_ = nullptr, *dk_tile_ = nullptr, *dq_tile_ = nullptr;
  T *v_tile_ = nullptr, *dv_tile_ = nullptr, *out_tile_ = nullptr, *dout_tile_ = nullptr;
  LseView<T> lse_tile_;
};

/// dq, dk, dv and drelative over the pairs of `tiles`. One task is some runs of keys of a key head.
template <class T, class Tiles>
void attention_backward(const Tiles& tiles, const AttentionBackTensors& t) {
  using Loop = BackwardLoop<T, Tiles>;
  const Call<T>& call = tiles.call;
  const BackwardHeads<T> x{t};
  const int64_t heads = call.B * x.kv_heads;
  const KeyRuns<T> runs(call, x, tiles.max_key_runs(std::max<int64_t>(1, heads)));
  Scratch scratch(Loop::scratch_bytes(runs.max_length(), call.d, call.dv));
  const int64_t flops_per_run = std::max<int64_t>(1, 2 * call.group * tiles.flops_of_head() / runs.count);
  const bool prefetches = runs.count == 1 && call.group == 1 && call.has_short_heads();
  parallel_rows(heads * runs.count, flops_per_task / flops_per_run, [&](int64_t begin, int64_t end) {
    const Scratch::Part part(scratch);
    Loop loop(LoopMemory<T>(part), tiles, x, runs);
    int64_t flops = 0;
    for (int64_t n = begin; n < end; ++n) {
      if (n + 1 < end && prefetches) loop.prefetch_head((n + 1) / call.H, (n + 1) % call.H);
      flops += loop.run(n / heads, n % heads / x.kv_heads, n % x.kv_heads);
    }
    Count::add(flops);
  });
  runs.sum_runs();
}

}  // namespace heed::kernel
