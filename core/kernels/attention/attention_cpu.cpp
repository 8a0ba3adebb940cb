// Tiled attention on the CPU: which tiles there are, and how they fall on threads.
#include "core/kernels/attention.h"
#include "core/kernels/here.h"

#include "core/count.h"
#include "core/kernels/attention_call.h"
#include "core/kernels/attention_products.h"
#include "core/kernels/attention_row.h"
#include "core/kernels/scratch.h"
#include "core/pair_count.h"

namespace heed::kernel {
namespace {

/// So few queries that vectors of them would be mostly empty: decoding.
constexpr int64_t few_queries = 3;

template <class T>
void forward_rows(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionTerms& terms,
                  const Tensor& out, const Tensor& lse) {
  const Call<T> call(q, k, v, terms);
  if (ProductLog::wanted()) note_products(call, false);
  PairCount::add(call.pairs());
  const Heads<const T> qs(q), ks(k), vs(v);
  const Heads<T> outs(out);
  const RowLogs<T> sums(lse, call.B * call.H * call.Tq);
  const int64_t each = 2 * std::max<int64_t>(call.Tk, 1) * std::max<int64_t>(call.d + call.dv, 1);
  int32_t ascending[tile];
  for (int32_t j = 0; j < tile; ++j) ascending[j] = j;
  Scratch scratch(static_cast<int64_t>(sizeof(T)) * (ForwardRow<T>::scratch(call.d, call.dv) + tile));
  // Keys and values are read once and hardly worked on.
  parallel_rows(call.B * call.H * call.Tq, piece_flops / 64 / each, [&](int64_t begin, int64_t end) {
    const Scratch::Part part(scratch);
    T* bias = part.template data<T>();
    ForwardRow<T> work(bias + tile, call.d, call.dv);
    int64_t flops = 0;
    for (int64_t at = begin; at < end; ++at) {
      const int64_t b = at / call.Tq / call.H, h = at / call.Tq % call.H, i = at % call.Tq;
      work.start(qs.at(b, h, i), call.factor(), call.sink_of(h));
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

template <class T>
void forward(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionTerms& terms,
             const Tensor& out, const Tensor& lse) {
  const Call<T> call(q, k, v, terms);
  if (ProductLog::wanted()) note_products(call, false);
  PairCount::add(call.pairs());
  const Heads<const T> qs(q), ks(k), vs(v);
  const Heads<T> outs(out);
  const RowLogs<T> sums(lse, call.B * call.H * call.Tq);
  const int64_t tiles = pieces_of(call.Tq, tile), all = call.B * call.H * tiles;
  if (all == 0) return;
  const int64_t each =
      2 * std::min(call.Tq, tile) * std::max<int64_t>(call.Tk, 1) * std::max<int64_t>(call.d + call.dv, 1);
  Scratch scratch(
      static_cast<int64_t>(sizeof(StepTerms<T>) + sizeof(T) * ForwardTile<T>::scratch(call.d, call.dv)));
  parallel_rows(all, piece_flops / each, [&](int64_t begin, int64_t end) {
    const Scratch::Part part(scratch);
    auto& step = *part.template data<StepTerms<T>>();
    ForwardTile<T> work(reinterpret_cast<T*>(&step + 1), call.d, call.dv);
    int64_t flops = 0;
    for (int64_t at = begin; at < end; ++at) {
      const int64_t b = at / tiles / call.H, h = at / tiles % call.H;
      const int64_t i = (tiles - 1 - at % tiles) * tile;  // the longest causal tiles first
      const int64_t queries = std::min(tile, call.Tq - i), shared = h / call.group;
      work.start(qs.at(b, h, i), qs.ld, queries, call.factor(), call.sink_of(h));
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
        flops += work.keys(ks.at(b, shared, j), ks.ld, vs.at(b, shared, j), vs.ld, step.stairs, step.between);
      }
      work.finish(outs.at(b, h, i), outs.ld, sums.from((b * call.H + h) * call.Tq + i));
    }
    Count::add(flops);
  });
}

/// Few heads are cut into runs of keys too; each run then has its own share of dq, summed in order at the
/// end.
struct KeyRuns {
  int64_t length, count;

  KeyRuns(int64_t heads, int64_t keys) {
    constexpr int64_t wanted = 16, least = 4 * tile;
    const int64_t cuts = std::max<int64_t>(1, wanted / std::max<int64_t>(1, heads));
    length = std::max(least, pieces_of(pieces_of(keys, cuts), tile) * tile);
    count = std::max<int64_t>(1, pieces_of(keys, length));
  }
};

template <class T>
void backward(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionTerms& terms,
              const Tensor& out, const Tensor& lse, const Tensor& dout, const Tensor& dq, const Tensor& dk,
              const Tensor& dv, const Tensor& drelative) {
  const Call<T> call(q, k, v, terms);
  if (ProductLog::wanted()) note_products(call, true);
  const Heads<const T> qs(q), ks(k), vs(v), outs(out), douts(dout);
  const Heads<T> dqs(dq), dks(dk), dvs(dv);
  const RowLogs<T> sums(lse, call.B * call.H * call.Tq);
  const int64_t key_heads = k.extent(1), heads = call.B * key_heads, all_heads = call.B * call.H;
  const int64_t span = call.Tq + call.Tk - 1;
  if (drelative) std::fill_n(drelative.data<T>(), drelative.size(), T(0));
  if (heads == 0 || call.Tq == 0) {
    for (int64_t at = 0; at < heads; ++at) {
      zero_rows(dks.at(at / key_heads, at % key_heads, 0), dks.ld, call.Tk, call.d);
      zero_rows(dvs.at(at / key_heads, at % key_heads, 0), dvs.ld, call.Tk, call.dv);
    }
    return;
  }
  const int64_t wide_d = simd::padded<T>(call.d), wide_dv = simd::padded<T>(call.dv);
  const KeyRuns runs(heads, call.Tk);
  const int64_t length = std::min(runs.length, std::max<int64_t>(call.Tk, 1));
  const auto bytes = [](int64_t numbers) { return static_cast<int64_t>(sizeof(T)) * numbers; };
  Storage shares(runs.count > 1 ? bytes(runs.count * all_heads * call.Tq * call.d) : 0, Device::cpu);
  Storage diagonals(drelative ? bytes(runs.count * all_heads * span) : 0, Device::cpu);
  // Whole lines of each array, as Carve hands them out: narrow vectors leave a part of the last one.
  const int64_t sums_d = Carve<T>::rounded(length * wide_d), sums_dv = Carve<T>::rounded(length * wide_dv);
  const int64_t copied = (wide_d == call.d ? 0 : sums_d) + (wide_dv == call.dv ? 0 : sums_dv);
  const int64_t numbers = BackTile<T>::scratch(call.d, call.dv) + sums_d + sums_dv + copied;
  Scratch scratch(static_cast<int64_t>(sizeof(StepTerms<T>)) + bytes(numbers));
  const int64_t each = std::max<int64_t>(1, 4 * call.group * call.Tq * length * (call.d + call.dv));
  parallel_rows(heads * runs.count, piece_flops / each, [&](int64_t begin, int64_t end) {
    const Scratch::Part part(scratch);
    auto& step = *part.template data<StepTerms<T>>();
    Carve<T> carve(reinterpret_cast<T*>(&step + 1));
    T *dk_sum = carve.take(length * wide_d), *dv_sum = carve.take(length * wide_dv);
    T* k_copy = carve.take(wide_d == call.d ? 0 : length * wide_d);
    T* v_copy = carve.take(wide_dv == call.dv ? 0 : length * wide_dv);
    BackTile<T> work(carve.take(0), call.d, call.dv);
    int64_t flops = 0;
    for (int64_t at = begin; at < end; ++at) {
      const int64_t run = at / heads, b = at % heads / key_heads, shared = at % key_heads;
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
      std::fill_n(dk_sum, keys * wide_d, T(0));
      std::fill_n(dv_sum, keys * wide_dv, T(0));
      const Rows<T> k_rows = whole_rows(ks.at(b, shared, first), ks.ld, keys, call.d, k_copy);
      const Rows<T> v_rows = whole_rows(vs.at(b, shared, first), vs.ld, keys, call.dv, v_copy);
      for (int64_t h = shared * call.group; h < (shared + 1) * call.group; ++h) {
        const int64_t mine = run * all_heads + b * call.H + h;
        T* diagonal = drelative ? static_cast<T*>(diagonals.data()) + mine * span : nullptr;
        if (diagonal != nullptr) std::fill_n(diagonal, span, T(0));
        for (int64_t i = 0; i < call.Tq; i += tile) {
          const int64_t queries = std::min(tile, call.Tq - i);
          T* to = dqs.at(b, h, i);
          int64_t ld = dqs.ld;
          if (runs.count > 1) {
            to = static_cast<T*>(shares.data()) + (mine * call.Tq + i) * call.d;
            ld = call.d;
          }
          const int64_t seen = std::min(last, call.keys_before(b, i + queries));
          if (seen <= first) {
            zero_rows(to, ld, queries, call.d);
            continue;
          }
          work.start(qs.at(b, h, i), qs.ld, douts.at(b, h, i), douts.ld, outs.at(b, h, i), outs.ld,
                     sums.from((b * call.H + h) * call.Tq + i), queries, call.factor(), T(1));
          for (int64_t j = first; j < seen; j += tile) {
            step.prepare(call, b, h, i, queries, j, std::min(tile, seen - j));
            const int64_t row = j - first;
            flops += work.keys(k_rows.from(row), v_rows.from(row), step.stairs, step.between,
                               {dk_sum + row * wide_d, wide_d}, {dv_sum + row * wide_dv, wide_dv},
                               diagonal == nullptr ? nullptr : diagonal + i - j + call.Tk - 1);
          }
          work.finish(to, ld, call.scale);
        }
      }
      for (int64_t r = 0; r < keys; ++r) {
        simd::scaled(dk_sum + r * wide_d, call.d, call.scale, dks.at(b, shared, first + r));
        simd::scaled(dv_sum + r * wide_dv, call.dv, T(1), dvs.at(b, shared, first + r));
      }
      zero_rows(dks.at(b, shared, first + keys), dks.ld, all - keys, call.d);
      zero_rows(dvs.at(b, shared, first + keys), dvs.ld, all - keys, call.dv);
    }
    Count::add(flops);
  });
  for (int64_t row = 0; drelative && row < runs.count * all_heads; ++row) {
    const T* from = static_cast<const T*>(diagonals.data()) + row * span;
    T* to = drelative.data<T>() + row % call.H * span;
    for (int64_t n = 0; n < span; ++n) to[n] += from[n];
  }
  if (runs.count == 1) return;
  const int64_t together = pieces_of(light_grain, std::max<int64_t>(call.d, 1));
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
void AttentionBack::cpu<here>(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionTerms& terms,
                              const Tensor& out, const Tensor& lse, const Tensor& dout, const Tensor& dq,
                              const Tensor& dk, const Tensor& dv, const Tensor& drelative) {
  visit_float("attention", q.dtype(), [&](auto type) {
    backward<typename decltype(type)::type>(q, k, v, terms, out, lse, dout, dq, dk, dv, drelative);
  });
}

}  // namespace heed::kernel
