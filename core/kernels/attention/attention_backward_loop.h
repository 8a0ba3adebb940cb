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
  HeadView<const T> q, k, v, out, dout;
  HeadView<T> dq, dk, dv;
  LseView<T> lse;
  T* drelative;  ///< null: not wanted
  int64_t kv_heads;

  BackwardHeads(const AttentionBackTensors& t, const AttentionShape& call)
      : q(t.q, call.query_starts),
        k(t.k, call.key_starts),
        v(t.v, call.key_starts),
        out(t.out, call.query_starts),
        dout(t.dout, call.query_starts),
        dq(t.dq, call.query_starts),
        dk(t.dk, call.key_starts),
        dv(t.dv, call.key_starts),
        lse(t.lse, call.B * call.H * call.Tq),
        drelative(data_or_null<T>(t.drelative)),
        kv_heads(t.k.extent(1)) {}
};

/// Splits the keys of each head into runs, several where heads are too few for all threads. Each run sums its
/// part of dq [B, H, Tq, d] and of the diagonals of drelative [B, H, Tq + Tk - 1] apart; the parts are added
/// in order, so the number of threads changes no bit.
template <class T>
class KeyRuns {
 public:
  int64_t length, count;  ///< number of keys of a run, and of runs of a head

  /// Cuts each head into at most `max_count` runs, of at least 256 keys each.
  KeyRuns(const AttentionCall<T>& call, const BackwardHeads<T>& tensors, int64_t max_count)
      : length(std::max(4 * tile, ceil_div(ceil_div(call.Tk, std::max<int64_t>(1, max_count)), tile) * tile)),
        count(std::max<int64_t>(1, ceil_div(call.Tk, length))),
        call_(call),
        tensors_(tensors),
        heads_(call.B * call.H),
        num_diagonals_(call.Tq + call.Tk - 1),
        dq_(bytes(count > 1 ? count * heads_ * call.Tq * call.d : 0), Device::cpu),
        diagonals_(bytes(tensors.drelative != nullptr ? count * heads_ * num_diagonals_ : 0), Device::cpu) {}

  /// Number of keys of the longest run, at least one.
  int64_t max_length() const { return std::min(length, std::max<int64_t>(call_.Tk, 1)); }
  /// The rows to which a run writes its part of dq: dq itself where a head has one run.
  HeadView<T> dq(int64_t run) const {
    if (count == 1) return tensors_.dq;
    HeadView<T> run_dq;
    run_dq.ld = call_.d;
    run_dq.head = call_.Tq * run_dq.ld;
    run_dq.batch = call_.H * run_dq.head;
    run_dq.data = static_cast<T*>(dq_.data()) + run * call_.B * run_dq.batch;
    return run_dq;
  }
  /// The sums [Tq + Tk - 1] of a run for the diagonals of a head, set to zero; null where drelative is not
  /// wanted.
  T* diagonals(int64_t run, int64_t b, int64_t h) const {
    if (tensors_.drelative == nullptr) return nullptr;
    T* sums = static_cast<T*>(diagonals_.data()) + (run * heads_ + b * call_.H + h) * num_diagonals_;
    std::fill_n(sums, num_diagonals_, T(0));
    return sums;
  }

  /// Writes dq and drelative, the sums over the runs in order.
  void sum_runs() const {
    if (tensors_.drelative != nullptr) std::fill_n(tensors_.drelative, call_.H * num_diagonals_, T(0));
    for (int64_t row = 0; tensors_.drelative != nullptr && row < count * heads_; ++row) {
      const T* sums = static_cast<const T*>(diagonals_.data()) + row * num_diagonals_;
      T* drelative = tensors_.drelative + row % call_.H * num_diagonals_;
      for (int64_t n = 0; n < num_diagonals_; ++n) drelative[n] += sums[n];
    }
    if (count == 1) return;
    const int64_t rows_per_task = ceil_div(light_grain, std::max<int64_t>(call_.d, 1));
    parallel_rows(heads_ * call_.Tq, rows_per_task, [&](int64_t begin, int64_t end) {
      const T* run_sums = static_cast<const T*>(dq_.data());
      for (int64_t row = begin; row < end; ++row) {
        const int64_t b = row / call_.Tq / call_.H, i = row % call_.Tq;
        if (i >= call_.num_queries(b)) continue;
        T* dq = tensors_.dq.at(b, row / call_.Tq % call_.H, i);
        std::copy_n(run_sums + row * call_.d, call_.d, dq);
        for (int64_t run = 1; run < count; ++run) {
          const T* addend = run_sums + (run * heads_ * call_.Tq + row) * call_.d;
          for (int64_t c = 0; c < call_.d; ++c) dq[c] += addend[c];
        }
      }
    });
  }

 private:
  static int64_t bytes(int64_t elements) { return static_cast<int64_t>(sizeof(T)) * elements; }

  const AttentionCall<T>& call_;
  const BackwardHeads<T>& tensors_;
  int64_t heads_, num_diagonals_;
  Storage dq_, diagonals_;
};

/// Keys or values of one run [keys, width] as rows of whole vectors, and the sums of their gradients.
template <class T>
struct RunRows {
  int64_t width;
  bool sums_in_gradient;  ///< true where `sums` are the rows of the gradient tensor
  T *padded_copy, *sums_memory;
  Rows<T> rows{};
  SumRows<T> sums{};
  int64_t num_zeroed = 0;  ///< number of rows of `sums` that are initialised

  static int64_t num_elements(int64_t keys, int64_t width) {
    return BumpAllocator<T>::rounded(keys * simd::padded<T>(width));
  }
  /// Takes memory for runs of at most `max_keys` keys. With `may_use_gradient` the sums of rows of whole
  /// vectors are kept in the gradient tensor; all others are in working memory.
  RunRows(BumpAllocator<T>& arena, int64_t max_keys, int64_t columns, bool may_use_gradient)
      : width(columns) {
    const bool is_whole = simd::padded<T>(width) == width;
    sums_in_gradient = may_use_gradient && is_whole;
    padded_copy = arena.take(is_whole ? 0 : num_elements(max_keys, width));
    sums_memory = arena.take(sums_in_gradient ? 0 : num_elements(max_keys, width));
  }
  /// Begins a run of rows x [keys, width], `ld` apart, with their gradient.
  void begin(const T* x, int64_t ld, SumRows<T> gradient, int64_t keys) {
    rows = whole_rows(x, ld, keys, width, padded_copy);
    sums = sums_in_gradient ? gradient : SumRows<T>{sums_memory, simd::padded<T>(width)};
    num_zeroed = 0;
  }
  /// Sets to zero those sums before row `end` that are not initialised. The caller does so just before it
  /// adds to them, so that they are in the cache.
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

/// Computes dk and dv of runs of keys, one after the other, and the part of dq of each run, in its working
/// memory.
template <class T, class Tiles>
class BackwardLoop {
 public:
  using Queries = typename Tiles::Queries;

  /// Bytes of working memory for runs of at most `keys` keys.
  static int64_t scratch_bytes(int64_t keys, int64_t d, int64_t dv) {
    const int64_t gathered = 4 * padded_tile_size<T>(d) + 4 * padded_tile_size<T>(dv) + 2 * tile;
    return LoopMemory<T>::bytes(2 * RunRows<T>::num_elements(keys, d) +
                                2 * RunRows<T>::num_elements(keys, dv) +
                                BackwardTile<T>::scratch_size(d, dv) + BackwardRow<T>::scratch_size(d, dv) +
                                (Tiles::scattered_rows ? gathered : 0));
  }
  BackwardLoop(LoopMemory<T> memory, const Tiles& tiles, const BackwardHeads<T>& tensors,
               const KeyRuns<T>& runs)
      : tiles_(tiles),
        call_(tiles.call),
        tensors_(tensors),
        runs_(runs),
        tile_pair_(memory.tile_pair),
        k_(memory.arena, runs.max_length(), call_.d, Tiles::scattered_rows),
        v_(memory.arena, runs.max_length(), call_.dv, Tiles::scattered_rows),
        tile_(memory.arena.take(BackwardTile<T>::scratch_size(call_.d, call_.dv)), call_.d, call_.dv),
        row_(memory.arena.take(BackwardRow<T>::scratch_size(call_.d, call_.dv)), call_.d, call_.dv) {
    if (!Tiles::scattered_rows) return;
    const int64_t size_d = padded_tile_size<T>(call_.d), size_dv = padded_tile_size<T>(call_.dv);
    for (T** buffer : {&q_tile_, &k_tile_, &dk_tile_, &dq_tile_}) *buffer = memory.arena.take(size_d);
    for (T** buffer : {&v_tile_, &dv_tile_, &out_tile_, &dout_tile_}) *buffer = memory.arena.take(size_dv);
    for (T** buffer : {&lse_tile_.log, &lse_tile_.residual}) *buffer = memory.arena.take(tile);
    std::fill_n(dk_tile_, size_d, T(0));
    std::fill_n(dv_tile_, size_dv, T(0));
  }

  /// Computes run `index` of the keys of batch row b and key head `kv_head`, recomputing the weights of all
  /// queries. Returns the number of operations.
  int64_t run(int64_t index, int64_t b, int64_t kv_head) {
    key_begin_ = index * runs_.length;
    key_end_ = std::max(key_begin_, std::min(key_begin_ + runs_.length, call_.num_keys(b)));
    dq_ = runs_.dq(index);
    const int64_t keys = key_end_ - key_begin_,
                  padding =
                      std::min(runs_.length, call_.key_rows(b) - key_begin_) - keys;  // keys past the length
    const SumRows<T> dk{tensors_.dk.at(b, kv_head, key_begin_), tensors_.dk.ld},
        dv{tensors_.dv.at(b, kv_head, key_begin_), tensors_.dv.ld};
    k_.begin(tensors_.k.at(b, kv_head, key_begin_), tensors_.k.ld, dk, keys);
    v_.begin(tensors_.v.at(b, kv_head, key_begin_), tensors_.v.ld, dv, keys);
    int64_t flops = 0;
    for (int64_t h = kv_head * call_.group; h < (kv_head + 1) * call_.group; ++h) {
      diagonals_ = runs_.diagonals(index, b, h);
      for (int64_t pass = 0; pass < tiles_.passes(); ++pass) {
        for (int64_t n = 0; n < tiles_.query_tiles(b, h, pass); ++n)
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
    const int64_t keys = call_.num_keys(b), queries = call_.num_queries(b);
    fetch_rows(tensors_.q.at(b, h, 0), tensors_.q.ld, queries, call_.d);
    fetch_rows(tensors_.k.at(b, h, 0), tensors_.k.ld, keys, call_.d);
    fetch_rows(tensors_.v.at(b, h, 0), tensors_.v.ld, keys, call_.dv);
    fetch_rows(tensors_.out.at(b, h, 0), tensors_.out.ld, queries, call_.dv);
    fetch_rows(tensors_.dout.at(b, h, 0), tensors_.dout.ld, queries, call_.dv);
    fetch_rows(tensors_.dq.at(b, h, 0), tensors_.dq.ld, queries, call_.d);
    fetch_rows(tensors_.dk.at(b, h, 0), tensors_.dk.ld, keys, call_.d);
    fetch_rows(tensors_.dv.at(b, h, 0), tensors_.dv.ld, keys, call_.dv);
  }

 private:
  // The scale of dq and dk is in the addends where sums may be in dk itself, else it multiplies the sums.
  T addend_scale() const { return Tiles::scattered_rows ? call_.scale : T(1); }
  T final_scale() const { return Tiles::scattered_rows ? T(1) : call_.scale; }

  /// Adds the gradients of queries [<= 64, d] with each tile of the run's keys that they see to dk and dv,
  /// and writes dq; a later pass adds to the dq of the earlier ones. Returns the number of operations.
  int64_t add_queries(const Queries& queries, bool is_later_pass) {
    const TileRows& rows = queries.rows;
    if (!tiles_.sees(queries, key_begin_, key_end_)) {
      for (int64_t i = 0; !is_later_pass && i < rows.count; ++i)
        std::fill_n(dq_.at(queries.b, queries.h, rows[i]), call_.d, T(0));
      return 0;
    }
    if constexpr (Tiles::scattered_rows) {
      if (queries.row_by_row) return add_row_by_row(queries, is_later_pass);
    }
    start(queries);
    int64_t flops = 0;
    tiles_.each_key_tile(queries, key_begin_, key_end_, tile_pair_, [&](const TileRows& keys) {
      // The tile adds pair (i, j), counted within tiles, to diagonals[i - j]; diagonals_[Tk - 1] is that of i
      // = j in the whole head.
      T* diagonals = diagonals_ == nullptr
                         ? nullptr
                         : diagonals_ + rows.first - (key_begin_ + keys.first) + call_.Tk - 1;
      const int64_t keys_end = keys[keys.count - 1] + 1;  // they ascend
      k_.zero_sums_before(keys_end);
      v_.zero_sums_before(keys_end);
      // Sums go to the rows of the run in place, else to tiles of their own, which scatter_rows() adds and
      // clears.
      const bool sums_in_place = is_used_in_place<T>(keys.gap, std::max(k_.sums.ld, v_.sums.ld));
      const auto tile_sums = [&](SumRows<T> run_sums, int64_t width, T* gathered) {
        return sums_in_place ? SumRows<T>{run_sums.row(keys.first), keys.gap * run_sums.ld}
                             : SumRows<T>{gathered, simd::padded<T>(width)};
      };
      const SumRows<T> dk = tile_sums(k_.sums, call_.d, dk_tile_),
                       dv = tile_sums(v_.sums, call_.dv, dv_tile_);
      flops +=
          tile_.add_keys(rows_of(k_.rows, keys, call_.d, k_tile_), rows_of(v_.rows, keys, call_.dv, v_tile_),
                         tile_pair_.tile_mask, tile_pair_.modifiers, dk, dv, diagonals);
      if (sums_in_place) return;
      scatter_rows(dk_tile_, keys, dk.ld, k_.sums);
      scatter_rows(dv_tile_, keys, dv.ld, v_.sums);
    });
    finish(queries, is_later_pass);
    return flops;
  }

  /// Begins a tile of queries.
  void start(const Queries& queries) {
    const auto rows = [&](const HeadView<const T>& heads, int64_t width, T* copy) {
      return rows_of<T>({heads.at(queries.b, queries.h, 0), heads.ld}, queries.rows, width, copy);
    };
    const Rows<T> q = rows(tensors_.q, call_.d, q_tile_), dout = rows(tensors_.dout, call_.dv, dout_tile_),
                  out = rows(tensors_.out, call_.dv, out_tile_);
    LseView<T> lse = tensors_.lse.from((queries.b * call_.H + queries.h) * call_.Tq);
    if (queries.rows.gap == 1) {
      lse = lse.from(queries.rows.first);
    } else {
      for (int64_t i = 0; i < queries.rows.count; ++i) lse_tile_.put(i, lse.at(queries.rows[i]));
      lse = lse_tile_;
    }
    tile_.start(q.data, q.ld, dout.data, dout.ld, out.data, out.ld, lse, queries.rows.count,
                call_.scale_log2(), addend_scale());
  }

  /// Writes the dq of a tile of queries; a later pass adds it to that of the earlier ones.
  void finish(const Queries& queries, bool is_later_pass) {
    if (queries.rows.gap > 0 && !is_later_pass) {
      tile_.finish(dq_.at(queries.b, queries.h, queries.rows.first), queries.rows.gap * dq_.ld,
                   final_scale());
      return;
    }
    tile_.finish(dq_tile_, call_.d, final_scale());
    for (int64_t i = 0; i < queries.rows.count; ++i)
      put_row(dq_tile_ + i * call_.d, dq_.at(queries.b, queries.h, queries.rows[i]), is_later_pass);
  }

  /// Adds the gradients of each query of the tile by itself, with its own keys.
  int64_t add_row_by_row(const Queries& queries, bool is_later_pass) {
    const int64_t b = queries.b, h = queries.h;
    int64_t flops = 0;
    for (int64_t n = 0; n < queries.rows.count; ++n) {
      const int64_t i = queries.rows[n];
      row_.start(tensors_.q.at(b, h, i), tensors_.dout.at(b, h, i), tensors_.out.at(b, h, i),
                 tensors_.lse.at((b * call_.H + h) * call_.Tq + i), call_.scale_log2(), addend_scale());
      tiles_.each_key_list(
          queries, i, key_begin_, key_end_, [&](KeyList keys, const T*, const T* dropout_factors) {
            k_.zero_sums_before(keys.index[keys.count - 1] + 1);
            v_.zero_sums_before(keys.index[keys.count - 1] + 1);
            flops += row_.add_keys(k_.rows, v_.rows, keys, k_.sums, v_.sums, dropout_factors);
          });
      row_.finish(dq_tile_);
      put_row(dq_tile_, dq_.at(b, h, i), is_later_pass);
    }
    return flops;
  }

  /// dq_row [d] = dq, or += dq in a later pass.
  void put_row(const T* dq, T* dq_row, bool is_later_pass) const {
    if (!is_later_pass) return simd::scaled(dq, call_.d, T(1), dq_row);
    for (int64_t c = 0; c < call_.d; ++c) dq_row[c] += dq[c];
  }

  const Tiles& tiles_;
  const AttentionCall<T>& call_;
  const BackwardHeads<T>& tensors_;
  const KeyRuns<T>& runs_;
  TilePair<T>& tile_pair_;
  // The current run: keys [key_begin_, key_end_), and the sums of its parts of dq and drelative.
  RunRows<T> k_, v_;
  int64_t key_begin_ = 0, key_end_ = 0;
  HeadView<T> dq_;
  T* diagonals_ = nullptr;
  BackwardTile<T> tile_;
  BackwardRow<T> row_;
  // Rows of a tile, gathered.
  T *q_tile_ = nullptr, *k_tile_ = nullptr, *dk_tile_ = nullptr, *dq_tile_ = nullptr;
  T *v_tile_ = nullptr, *dv_tile_ = nullptr, *out_tile_ = nullptr, *dout_tile_ = nullptr;
  LseView<T> lse_tile_;
};

/// dq, dk, dv and drelative over the pairs of `tiles`. One task is some runs of keys of a key head.
template <class T, class Tiles>
void attention_backward(const Tiles& tiles, const AttentionBackTensors& t) {
  using Loop = BackwardLoop<T, Tiles>;
  const AttentionCall<T>& call = tiles.call;
  const BackwardHeads<T> tensors(t, call);
  const int64_t heads = call.B * tensors.kv_heads;
  const KeyRuns<T> runs(call, tensors, tiles.max_key_runs(std::max<int64_t>(1, heads)));
  Scratch scratch(Loop::scratch_bytes(runs.max_length(), call.d, call.dv));
  const int64_t flops_per_run = std::max<int64_t>(1, 2 * call.group * tiles.flops_of_head() / runs.count);
  const bool prefetches = runs.count == 1 && call.group == 1 && call.has_short_heads();
  parallel_rows(heads * runs.count, flops_per_task / flops_per_run, [&](int64_t begin, int64_t end) {
    const Scratch::Part part(scratch);
    Loop loop(LoopMemory<T>(part), tiles, tensors, runs);
    int64_t flops = 0;
    for (int64_t n = begin; n < end; ++n) {
      if (n + 1 < end && prefetches) loop.prefetch_head((n + 1) / call.H, (n + 1) % call.H);
      flops += loop.run(n / heads, n % heads / tensors.kv_heads, n % tensors.kv_heads);
    }
    Count::add(flops);
  });
  runs.sum_runs();
}

}  // namespace heed::kernel
