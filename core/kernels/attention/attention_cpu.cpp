// Tiled attention on the CPU, forward and backward: loops over batch, heads and tiles, and their threads.
#include "heed/core/kernels/attention/attention.h"

#include "heed/core/kernels/attention/attention_backward_tile.h"
#include "heed/core/kernels/attention/attention_call.h"
#include "heed/core/kernels/attention/attention_products.h"
#include "heed/core/kernels/attention/attention_single_query.h"
#include "heed/core/kernels/simd/scratch.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"
#include "heed/core/pair_count.h"

namespace heed::kernel {
namespace {

/// Calls with at most this many queries, as in decoding, work query by query: vectors of queries would be
/// mostly empty.
constexpr int64_t few_queries = 3;

/// out and lse of one query at a time, for few queries without dropout: its keys go in tiles of 64 through an
/// online softmax. One task is some query rows (b, h, i).
template <class T>
void forward_rows(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionTerms& terms,
                  const Tensor& out, const Tensor& lse) {
  const Call<T> call(q, k, v, terms);
  if (ProductLog::wanted()) note_products(call, false);
  PairCount::add(call.pairs());
  const HeadView<const T> qs(q), ks(k), vs(v);
  const HeadView<T> outs(out);
  const RowLogs<T> sums(lse, call.B * call.H * call.Tq);
  const int64_t each = 2 * std::max<int64_t>(call.Tk, 1) * std::max<int64_t>(call.d + call.dv, 1);
  int32_t ascending[tile];
  for (int32_t j = 0; j < tile; ++j) ascending[j] = j;
  Scratch scratch(static_cast<int64_t>(sizeof(T)) * (ForwardRow<T>::scratch(call.d, call.dv) + tile));
  // A query reads its keys and values once, so memory limits these tasks: they are small.
  parallel_rows(call.B * call.H * call.Tq, flops_per_task / 64 / each, [&](int64_t begin, int64_t end) {
    const Scratch::Part part(scratch);
    T* bias = part.template data<T>();
    ForwardRow<T> work(bias + tile, call.d, call.dv);
    int64_t flops = 0;
    for (int64_t at = begin; at < end; ++at) {
      const int64_t b = at / call.Tq / call.H, h = at / call.Tq % call.H, i = at % call.Tq;
      work.start(qs.at(b, h, i), call.scale_log2(), call.sink_of(h));
      const int64_t keys = call.keys_before(b, i + 1), shared = h / call.group;
      for (int64_t j = 0; j < keys; j += tile) {
        const int64_t count = std::min(tile, keys - j);
        for (int64_t n = 0; call.added() && n < count; ++n) {
          T more = call.bias == nullptr ? T(0) : *call.bias_at(b, h, i, j + n);
          if (call.relative != nullptr) more += *call.relative_at(h, i, j + n);
          bias[n] = more * static_cast<T>(log2_e);
        }
        flops += work.keys({ks.at(b, shared, j), ks.ld}, {vs.at(b, shared, j), vs.ld}, {ascending, count},
                           call.added() ? bias : nullptr, call.cap);
      }
      work.finish(outs.at(b, h, i), sums.from(at));
    }
    Count::add(flops);
  });
}

/// out[b, h, i, :] = sum_j softmax_j(score_ij) v_j and lse. One task is some tiles of up to 64 queries of a
/// head; each goes through the keys that it sees in tiles of 64 with an online softmax.
template <class T>
void forward(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionTerms& terms,
             const Tensor& out, const Tensor& lse) {
  const Call<T> call(q, k, v, terms);
  if (ProductLog::wanted()) note_products(call, false);
  PairCount::add(call.pairs());
  const HeadView<const T> qs(q), ks(k), vs(v);
  const HeadView<T> outs(out);
  const RowLogs<T> sums(lse, call.B * call.H * call.Tq);
  const int64_t tiles = ceil_div(call.Tq, tile), all = call.B * call.H * tiles;
  if (all == 0) return;
  const int64_t each =
      2 * std::min(call.Tq, tile) * std::max<int64_t>(call.Tk, 1) * std::max<int64_t>(call.d + call.dv, 1);
  Scratch scratch(
      static_cast<int64_t>(sizeof(StepTerms<T>) + sizeof(T) * ForwardTile<T>::scratch(call.d, call.dv)));
  parallel_rows(all, flops_per_task / each, [&](int64_t begin, int64_t end) {
    const Scratch::Part part(scratch);
    auto& step = *part.template data<StepTerms<T>>();
    ForwardTile<T> work(reinterpret_cast<T*>(&step + 1), call.d, call.dv);
    int64_t flops = 0;
    for (int64_t at = begin; at < end; ++at) {
      const int64_t b = at / tiles / call.H, h = at / tiles % call.H;
      const int64_t i = (tiles - 1 - at % tiles) * tile;  // the longest causal tiles first
      const int64_t queries = std::min(tile, call.Tq - i), shared = h / call.group;
      work.start(qs.at(b, h, i), qs.ld, queries, call.scale_log2(), call.sink_of(h));
      const int64_t keys = call.keys_before(b, i + queries);
      if (at + 1 < end && (at + 1) % tiles == 0 && call.short_heads()) {
        const int64_t next_b = (at + 1) / tiles / call.H, next_h = (at + 1) / tiles % call.H;
        fetch_rows(qs.at(next_b, next_h, 0), qs.ld, call.Tq, call.d);
        fetch_rows(ks.at(next_b, next_h / call.group, 0), ks.ld, call.keys_of(next_b), call.d);
        fetch_rows(vs.at(next_b, next_h / call.group, 0), vs.ld, call.keys_of(next_b), call.dv);
        fetch_rows(outs.at(next_b, next_h, 0), outs.ld, call.Tq, call.dv);
      }
      for (int64_t j = 0; j < keys; j += tile) {
        step.prepare(call, b, h, i, queries, j, std::min(tile, keys - j));
        flops +=
            work.keys(ks.at(b, shared, j), ks.ld, vs.at(b, shared, j), vs.ld, step.tile_mask, step.modifiers);
      }
      work.finish(outs.at(b, h, i), outs.ld, sums.from((b * call.H + h) * call.Tq + i));
    }
    Count::add(flops);
  });
}

/// Splits the keys of each head into runs for threads where heads are few. Each run has its own part of dq;
/// the parts are added in order at the end.
struct KeyRuns {
  int64_t length, count;

  KeyRuns(int64_t heads, int64_t keys) {
    constexpr int64_t wanted = 16, least = 4 * tile;
    const int64_t cuts = std::max<int64_t>(1, wanted / std::max<int64_t>(1, heads));
    length = std::max(least, ceil_div(ceil_div(keys, cuts), tile) * tile);
    count = std::max<int64_t>(1, ceil_div(keys, length));
  }
};

/// dq, dk, dv and drelative. One task is some runs of keys of a key head: for each head that shares the keys
/// it loops over tiles of 64 queries, and within each over the run's tiles of 64 keys. Several runs write a
/// dq each; these are added in order at the end.
template <class T>
void backward(const AttentionBackTensors& t, const AttentionTerms& terms) {
  const Call<T> call(t.q, t.k, t.v, terms);
  if (ProductLog::wanted()) note_products(call, true);
  const HeadView<const T> qs(t.q), ks(t.k), vs(t.v), outs(t.out), douts(t.dout);
  const HeadView<T> dqs(t.dq), dks(t.dk), dvs(t.dv);
  const RowLogs<T> sums(t.lse, call.B * call.H * call.Tq);
  const int64_t kv_heads = t.k.extent(1), heads = call.B * kv_heads, all_heads = call.B * call.H;
  const int64_t span = call.Tq + call.Tk - 1;
  if (t.drelative) std::fill_n(t.drelative.data<T>(), t.drelative.size(), T(0));
  if (heads == 0 || call.Tq == 0) {
    for (int64_t at = 0; at < heads; ++at) {
      zero_rows(dks.at(at / kv_heads, at % kv_heads, 0), dks.ld, call.Tk, call.d);
      zero_rows(dvs.at(at / kv_heads, at % kv_heads, 0), dvs.ld, call.Tk, call.dv);
    }
    return;
  }
  const int64_t padded_d = simd::padded<T>(call.d), padded_dv = simd::padded<T>(call.dv);
  const KeyRuns runs(heads, call.Tk);
  const int64_t length = std::min(runs.length, std::max<int64_t>(call.Tk, 1));
  const auto bytes = [](int64_t numbers) { return static_cast<int64_t>(sizeof(T)) * numbers; };
  Storage shares(runs.count > 1 ? bytes(runs.count * all_heads * call.Tq * call.d) : 0, Device::cpu);
  Storage diagonals(t.drelative ? bytes(runs.count * all_heads * span) : 0, Device::cpu);
  // Rounded as BumpAllocator rounds.
  const int64_t sums_d = BumpAllocator<T>::rounded(length * padded_d),
                sums_dv = BumpAllocator<T>::rounded(length * padded_dv);
  const int64_t copied = (padded_d == call.d ? 0 : sums_d) + (padded_dv == call.dv ? 0 : sums_dv);
  const int64_t numbers = BackTile<T>::scratch(call.d, call.dv) + sums_d + sums_dv + copied;
  Scratch scratch(static_cast<int64_t>(sizeof(StepTerms<T>)) + bytes(numbers));
  const int64_t each = std::max<int64_t>(1, 4 * call.group * call.Tq * length * (call.d + call.dv));
  parallel_rows(heads * runs.count, flops_per_task / each, [&](int64_t begin, int64_t end) {
    const Scratch::Part part(scratch);
    auto& step = *part.template data<StepTerms<T>>();
    BumpAllocator<T> arena(reinterpret_cast<T*>(&step + 1));
    T *dk_sum = arena.take(length * padded_d), *dv_sum = arena.take(length * padded_dv);
    T* k_copy = arena.take(padded_d == call.d ? 0 : length * padded_d);
    T* v_copy = arena.take(padded_dv == call.dv ? 0 : length * padded_dv);
    BackTile<T> work(arena.take(0), call.d, call.dv);
    int64_t flops = 0;
    for (int64_t at = begin; at < end; ++at) {
      const int64_t run = at / heads, b = at % heads / kv_heads, shared = at % kv_heads;
      const int64_t first = run * length, last = std::min(first + length, call.keys_of(b));
      const int64_t all = std::min(length, call.Tk - first), keys = std::max<int64_t>(0, last - first);
      if (at + 1 < end && runs.count == 1 && call.group == 1 && call.short_heads()) {
        const int64_t next_b = (at + 1) / call.H, next_h = (at + 1) % call.H,
                      next_keys = call.keys_of(next_b);
        fetch_rows(qs.at(next_b, next_h, 0), qs.ld, call.Tq, call.d);
        fetch_rows(ks.at(next_b, next_h, 0), ks.ld, next_keys, call.d);
        fetch_rows(vs.at(next_b, next_h, 0), vs.ld, next_keys, call.dv);
        fetch_rows(outs.at(next_b, next_h, 0), outs.ld, call.Tq, call.dv);
        fetch_rows(douts.at(next_b, next_h, 0), douts.ld, call.Tq, call.dv);
        fetch_rows(dqs.at(next_b, next_h, 0), dqs.ld, call.Tq, call.d);
        fetch_rows(dks.at(next_b, next_h, 0), dks.ld, next_keys, call.d);
        fetch_rows(dvs.at(next_b, next_h, 0), dvs.ld, next_keys, call.dv);
      }
      // Sums of dk and dv [keys, padded width] of this run; keys and values as rows of whole vectors.
      std::fill_n(dk_sum, keys * padded_d, T(0));
      std::fill_n(dv_sum, keys * padded_dv, T(0));
      const Rows<T> k_rows = whole_rows(ks.at(b, shared, first), ks.ld, keys, call.d, k_copy);
      const Rows<T> v_rows = whole_rows(vs.at(b, shared, first), vs.ld, keys, call.dv, v_copy);
      // Tiles of queries of each head: computes their weights again, adds to dk and dv, and writes their dq.
      for (int64_t h = shared * call.group; h < (shared + 1) * call.group; ++h) {
        const int64_t map_row = run * all_heads + b * call.H + h;
        T* diagonal = t.drelative ? static_cast<T*>(diagonals.data()) + map_row * span : nullptr;
        if (diagonal != nullptr) std::fill_n(diagonal, span, T(0));
        for (int64_t i = 0; i < call.Tq; i += tile) {
          const int64_t queries = std::min(tile, call.Tq - i);
          T* to = dqs.at(b, h, i);
          int64_t ld = dqs.ld;
          if (runs.count > 1) {
            to = static_cast<T*>(shares.data()) + (map_row * call.Tq + i) * call.d;
            ld = call.d;
          }
          const int64_t seen = std::min(last, call.keys_before(b, i + queries));
          if (seen <= first) {
            zero_rows(to, ld, queries, call.d);
            continue;
          }
          work.start(qs.at(b, h, i), qs.ld, douts.at(b, h, i), douts.ld, outs.at(b, h, i), outs.ld,
                     sums.from((b * call.H + h) * call.Tq + i), queries, call.scale_log2(), T(1));
          for (int64_t j = first; j < seen; j += tile) {
            step.prepare(call, b, h, i, queries, j, std::min(tile, seen - j));
            const int64_t row = j - first;
            flops += work.keys(k_rows.from(row), v_rows.from(row), step.tile_mask, step.modifiers,
                               {dk_sum + row * padded_d, padded_d}, {dv_sum + row * padded_dv, padded_dv},
                               diagonal == nullptr ? nullptr : diagonal + i - j + call.Tk - 1);
          }
          work.finish(to, ld, call.scale);
        }
      }
      // dk [keys, d] and dv [keys, dv] from their padded sums; zeros for keys past the length.
      for (int64_t r = 0; r < keys; ++r) {
        simd::scaled(dk_sum + r * padded_d, call.d, call.scale, dks.at(b, shared, first + r));
        simd::scaled(dv_sum + r * padded_dv, call.dv, T(1), dvs.at(b, shared, first + r));
      }
      zero_rows(dks.at(b, shared, first + keys), dks.ld, all - keys, call.d);
      zero_rows(dvs.at(b, shared, first + keys), dvs.ld, all - keys, call.dv);
    }
    Count::add(flops);
  });
  // drelative [H, Tq + Tk - 1]: the diagonals of all runs and batch rows in order.
  for (int64_t row = 0; t.drelative && row < runs.count * all_heads; ++row) {
    const T* from = static_cast<const T*>(diagonals.data()) + row * span;
    T* to = t.drelative.data<T>() + row % call.H * span;
    for (int64_t n = 0; n < span; ++n) to[n] += from[n];
  }
  if (runs.count == 1) return;
  // dq [B, H, Tq, d]: the sum of what the runs wrote, in order.
  const int64_t together = ceil_div(light_grain, std::max<int64_t>(call.d, 1));
  parallel_rows(all_heads * call.Tq, together, [&](int64_t begin, int64_t end) {
    const T* share = static_cast<const T*>(shares.data());
    for (int64_t row = begin; row < end; ++row) {
      T* to = dqs.at(row / call.Tq / call.H, row / call.Tq % call.H, row % call.Tq);
      std::copy_n(share + row * call.d, call.d, to);
      for (int64_t run = 1; run < runs.count; ++run) {
        const T* more = share + (run * all_heads * call.Tq + row) * call.d;
        for (int64_t c = 0; c < call.d; ++c) to[c] += more[c];
      }
    }
  });
}

}  // namespace

template <>
void Attention::cpu<here>(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionTerms& terms,
                          const Tensor& out, const Tensor& lse) {
  visit_float("attention", q.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    if (q.extent(2) <= few_queries && dropout_threshold(terms.dropout) == 0)
      return forward_rows<T>(q, k, v, terms, out, lse);
    forward<T>(q, k, v, terms, out, lse);
  });
}

template <>
void AttentionBack::cpu<here>(const AttentionBackTensors& t, const AttentionTerms& terms) {
  visit_float("attention", t.q.dtype(),
              [&](auto type) { backward<typename decltype(type)::type>(t, terms); });
}

}  // namespace heed::kernel
