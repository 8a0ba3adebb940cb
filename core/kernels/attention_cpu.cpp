// Tiled attention on the CPU: which tiles there are, what each sees, and how they fall on threads.
#include "core/kernels/attention.h"
#include "core/kernels/here.h"

#include "core/count.h"
#include "core/kernels/attention_dropout.h"
#include "core/kernels/attention_products.h"
#include "core/kernels/attention_row.h"
#include "core/kernels/scratch.h"

namespace heed::kernel {
namespace {

/// Everything of a call that its pieces read.
template <class T>
struct Call {
  int64_t B, H, Tq, Tk, d, dv;
  bool causal;
  int64_t first_query;
  T scale;
  const int32_t* key_lengths;
  const T* bias;
  int64_t bias_stride[4] = {0, 0, 0, 0};
  bool dropped;
  DropoutTerms dropout;
  T keep_scale;

  Call(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionTerms& terms)
      : B(q.extent(0)),
        H(q.extent(1)),
        Tq(q.extent(2)),
        Tk(k.extent(2)),
        d(q.extent(3)),
        dv(v.extent(3)),
        causal(terms.causal),
        first_query(terms.first_query),
        scale(static_cast<T>(terms.scale)),
        key_lengths(terms.key_lengths ? terms.key_lengths.template data<int32_t>() : nullptr),
        bias(terms.bias ? terms.bias.template data<T>() : nullptr),
        dropped(dropout_threshold(terms.dropout) > 0),
        keep_scale(static_cast<T>(dropout_scale(terms.dropout))) {
    for (int64_t axis = 0; bias != nullptr && axis < 4; ++axis) {
      bias_stride[axis] = terms.bias.extent(axis) == 1 ? 0 : terms.bias.strides()[axis];
    }
    if (dropped) dropout = DropoutTerms::of(terms.dropout, terms.draw);
  }

  T factor() const { return static_cast<T>(static_cast<double>(scale) * log2_e); }
  /// Keys that batch row b has.
  int64_t keys_of(int64_t b) const {
    return key_lengths == nullptr ? Tk : std::clamp<int64_t>(key_lengths[b], 0, Tk);
  }
  const T* bias_at(int64_t b, int64_t h, int64_t i, int64_t j) const {
    return bias + b * bias_stride[0] + h * bias_stride[1] + i * bias_stride[2] + j * bias_stride[3];
  }
  /// So short that a head is done before the hardware has seen how it lies.
  bool short_heads() const { return Tq <= 2 * tile && Tk <= 2 * tile; }
  /// Keys that some query before `end` sees.
  int64_t keys_before(int64_t b, int64_t end) const {
    return causal ? std::clamp<int64_t>(end + first_query, 0, keys_of(b)) : keys_of(b);
  }
};

/// What stands between scores and weights of one step, with the memory it needs.
template <class T>
struct StepTerms {
  PairBits<T> visible, kept;
  alignas(64) T bias[tile * tile];
  Stairs stairs;
  Between<T> between;

  /// Queries from i on (`queries` of them) against keys from j on (`keys` of them).
  void prepare(const Call<T>& call, int64_t b, int64_t h, int64_t i, int64_t queries, int64_t j,
               int64_t keys) {
    stairs.steps = 0;
    between = {};
    if (call.causal && i + call.first_query + 1 < j + keys) {
      const int64_t ahead = i + call.first_query + 1 - j;  // keys of this step that the first query sees
      for (int64_t g = 0; g < queries; g += Stairs::group) {
        stairs.add(g, std::clamp<int64_t>(ahead + std::min(g + Stairs::group, queries) - 1, 0, keys));
      }
      for (int64_t lane = 0; lane < simd::padded<T>(queries); ++lane)
        visible.set(lane, low_bits(ahead + lane));
      between.visible = &visible;
    } else {
      stairs.add(0, keys);
    }
    if (call.bias != nullptr) {
      add_bias(call, b, h, i, queries, j, keys);
      between.bias = bias;
    }
    if (call.dropped) {
      const uint64_t row = (static_cast<uint64_t>(b) * call.H + h) * call.Tq + i;
      call.dropout.fill(row * call.Tk + j, static_cast<uint64_t>(call.Tk), queries, keys, kept);
      between.kept = &kept;
      between.keep_scale = call.keep_scale;
    }
  }

 private:
  void add_bias(const Call<T>& call, int64_t b, int64_t h, int64_t i, int64_t queries, int64_t j,
                int64_t keys) {
    const int64_t* stride = call.bias_stride;
    const int64_t width = simd::padded<T>(queries);
    const T* from = call.bias_at(b, h, i, j);
    const T unit = static_cast<T>(log2_e);
    if (stride[2] == 0) {
      for (int64_t key = 0; key < keys; ++key)
        std::fill_n(bias + key * width, width, from[key * stride[3]] * unit);
    } else if (stride[3] == 1) {
      simd::turn(from, stride[2], queries, keys, unit, bias, width);
    } else {
      for (int64_t key = 0; key < keys; ++key) {
        std::fill_n(bias + key * width, width, T(0));
        for (int64_t q = 0; q < queries; ++q)
          bias[key * width + q] = from[q * stride[2] + key * stride[3]] * unit;
      }
    }
  }
};

/// So few queries that vectors of them would be mostly empty: decoding.
constexpr int64_t few_queries = 3;

template <class T>
void forward_rows(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionTerms& terms,
                  const Tensor& out, const Tensor& lse) {
  const Call<T> call(q, k, v, terms);
  if (ProductLog::wanted()) note_products(call, false);
  const Heads<const T> qs(q), ks(k), vs(v);
  const Heads<T> outs(out);
  T* sums = lse.data<T>();
  const int64_t each = 2 * std::max<int64_t>(call.Tk, 1) * (call.d + call.dv);
  int32_t ascending[tile];
  for (int32_t j = 0; j < tile; ++j) ascending[j] = j;
  Scratch scratch(static_cast<int64_t>(sizeof(T)) * (ForwardRow<T>::scratch(call.d, call.dv) + tile));
  parallel_rows(call.B * call.H * call.Tq, piece_flops / 8 / each, [&](int64_t begin, int64_t end) {
    const Scratch::Part part(scratch);
    T* bias = part.template data<T>();
    ForwardRow<T> work(bias + tile, call.d, call.dv);
    int64_t flops = 0;
    for (int64_t at = begin; at < end; ++at) {
      const int64_t b = at / call.Tq / call.H, h = at / call.Tq % call.H, i = at % call.Tq;
      work.start(qs.at(b, h, i), call.factor());
      const int64_t keys = call.keys_before(b, i + 1);
      for (int64_t j = 0; j < keys; j += tile) {
        const int64_t count = std::min(tile, keys - j);
        for (int64_t n = 0; call.bias != nullptr && n < count; ++n) {
          bias[n] = *call.bias_at(b, h, i, j + n) * static_cast<T>(log2_e);
        }
        flops += work.keys({ks.at(b, h, j), ks.ld}, {vs.at(b, h, j), vs.ld}, {ascending, count},
                           call.bias == nullptr ? nullptr : bias);
      }
      work.finish(outs.at(b, h, i), sums + at);
    }
    Count::add(flops);
  });
}

template <class T>
void forward(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionTerms& terms,
             const Tensor& out, const Tensor& lse) {
  const Call<T> call(q, k, v, terms);
  if (ProductLog::wanted()) note_products(call, false);
  const Heads<const T> qs(q), ks(k), vs(v);
  const Heads<T> outs(out);
  T* sums = lse.data<T>();
  const int64_t tiles = pieces_of(call.Tq, tile), all = call.B * call.H * tiles;
  if (all == 0) return;
  const int64_t each = 2 * std::min(call.Tq, tile) * std::max<int64_t>(call.Tk, 1) * (call.d + call.dv);
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
      const int64_t queries = std::min(tile, call.Tq - i);
      work.start(qs.at(b, h, i), qs.ld, queries, call.factor());
      const int64_t keys = call.keys_before(b, i + queries);
      if (at + 1 < end && (at + 1) % tiles == 0 && call.short_heads()) {
        const int64_t next_b = (at + 1) / tiles / call.H, next_h = (at + 1) / tiles % call.H;
        fetch_rows(qs.at(next_b, next_h, 0), qs.ld, call.Tq, call.d);
        fetch_rows(ks.at(next_b, next_h, 0), ks.ld, call.keys_of(next_b), call.d);
        fetch_rows(vs.at(next_b, next_h, 0), vs.ld, call.keys_of(next_b), call.dv);
        fetch_rows(outs.at(next_b, next_h, 0), outs.ld, call.Tq, call.dv);
      }
      for (int64_t j = 0; j < keys; j += tile) {
        step.prepare(call, b, h, i, queries, j, std::min(tile, keys - j));
        flops += work.keys(ks.at(b, h, j), ks.ld, vs.at(b, h, j), vs.ld, step.stairs, step.between);
      }
      work.finish(outs.at(b, h, i), outs.ld, sums + (b * call.H + h) * call.Tq + i);
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
              const Tensor& dv) {
  const Call<T> call(q, k, v, terms);
  if (ProductLog::wanted()) note_products(call, true);
  const Heads<const T> qs(q), ks(k), vs(v), outs(out), douts(dout);
  const Heads<T> dqs(dq), dks(dk), dvs(dv);
  const T* sums = lse.data<T>();
  const int64_t heads = call.B * call.H;
  if (heads == 0 || call.Tq == 0) {
    for (int64_t at = 0; at < heads; ++at) {
      zero_rows(dks.at(at / call.H, at % call.H, 0), dks.ld, call.Tk, call.d);
      zero_rows(dvs.at(at / call.H, at % call.H, 0), dvs.ld, call.Tk, call.dv);
    }
    return;
  }
  const int64_t wide_d = simd::padded<T>(call.d), wide_dv = simd::padded<T>(call.dv);
  const KeyRuns runs(heads, call.Tk);
  const int64_t length = std::min(runs.length, std::max<int64_t>(call.Tk, 1));
  Storage shares(runs.count > 1 ? static_cast<int64_t>(sizeof(T)) * runs.count * heads * call.Tq * call.d : 0,
                 Device::cpu);
  // Whole lines of each array, as Carve hands them out: narrow vectors leave a part of the last one.
  const int64_t sums_d = Carve<T>::rounded(length * wide_d), sums_dv = Carve<T>::rounded(length * wide_dv);
  const int64_t copied = (wide_d == call.d ? 0 : sums_d) + (wide_dv == call.dv ? 0 : sums_dv);
  const int64_t numbers = BackTile<T>::scratch(call.d, call.dv) + sums_d + sums_dv + copied;
  Scratch scratch(static_cast<int64_t>(sizeof(StepTerms<T>)) + static_cast<int64_t>(sizeof(T)) * numbers);
  const int64_t each = 4 * call.Tq * length * (call.d + call.dv);
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
      const int64_t run = at / heads, b = at % heads / call.H, h = at % call.H;
      const int64_t first = run * length, last = std::min(first + length, call.keys_of(b));
      const int64_t all = std::min(length, call.Tk - first), keys = std::max<int64_t>(0, last - first);
      if (at + 1 < end && runs.count == 1 && call.short_heads()) {
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
      const Rows<T> k_rows = whole_rows(ks.at(b, h, first), ks.ld, keys, call.d, k_copy);
      const Rows<T> v_rows = whole_rows(vs.at(b, h, first), vs.ld, keys, call.dv, v_copy);
      for (int64_t i = 0; i < call.Tq; i += tile) {
        const int64_t queries = std::min(tile, call.Tq - i);
        T* to = dqs.at(b, h, i);
        int64_t ld = dqs.ld;
        if (runs.count > 1) {
          to = static_cast<T*>(shares.data()) + ((run * heads + b * call.H + h) * call.Tq + i) * call.d;
          ld = call.d;
        }
        const int64_t seen = std::min(last, call.keys_before(b, i + queries));
        if (seen <= first) {
          zero_rows(to, ld, queries, call.d);
          continue;
        }
        work.start(qs.at(b, h, i), qs.ld, douts.at(b, h, i), douts.ld, outs.at(b, h, i), outs.ld,
                   sums + (b * call.H + h) * call.Tq + i, queries, call.factor());
        for (int64_t j = first; j < seen; j += tile) {
          step.prepare(call, b, h, i, queries, j, std::min(tile, seen - j));
          const int64_t row = j - first;
          flops += work.keys(k_rows.from(row), v_rows.from(row), step.stairs, step.between,
                             dk_sum + row * wide_d, dv_sum + row * wide_dv);
        }
        work.finish(to, ld, call.scale);
      }
      for (int64_t r = 0; r < keys; ++r) {
        simd::scaled(dk_sum + r * wide_d, call.d, call.scale, dks.at(b, h, first + r));
        simd::scaled(dv_sum + r * wide_dv, call.dv, T(1), dvs.at(b, h, first + r));
      }
      zero_rows(dks.at(b, h, first + keys), dks.ld, all - keys, call.d);
      zero_rows(dvs.at(b, h, first + keys), dvs.ld, all - keys, call.dv);
    }
    Count::add(flops);
  });
  if (runs.count == 1) return;
  parallel_rows(heads * call.Tq, pieces_of(light_grain, call.d), [&](int64_t begin, int64_t end) {
    const T* share = static_cast<const T*>(shares.data());
    for (int64_t row = begin; row < end; ++row) {
      T* to = dqs.at(row / call.Tq / call.H, row / call.Tq % call.H, row % call.Tq);
      std::copy_n(share + row * call.d, call.d, to);
      for (int64_t run = 1; run < runs.count; ++run) {
        const T* more = share + (run * heads * call.Tq + row) * call.d;
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
                              const Tensor& dk, const Tensor& dv) {
  visit_float("attention", q.dtype(), [&](auto type) {
    backward<typename decltype(type)::type>(q, k, v, terms, out, lse, dout, dq, dk, dv);
  });
}

}  // namespace heed::kernel
