// Attention over the runs of a pattern on the CPU: tiles of queries against the parts of the keys that any of
// them sees.
#include "core/kernels/block_attention.h"
#include "core/kernels/here.h"

#include "core/count.h"
#include "core/kernels/block_walk.h"
#include "core/kernels/scratch.h"
#include "core/parallel.h"

namespace heed::kernel {
namespace {

template <class T>
struct Call {
  int64_t B, H, Tq, Tk, d, dv;
  T scale;
  const Pattern& pattern;
  const int32_t* key_lengths;

  Call(const Tensor& q, const Tensor& k, const Tensor& v, const BlockTerms& terms)
      : B(q.extent(0)),
        H(q.extent(1)),
        Tq(q.extent(2)),
        Tk(k.extent(2)),
        d(q.extent(3)),
        dv(v.extent(3)),
        scale(static_cast<T>(terms.scale)),
        pattern(*terms.pattern),
        key_lengths(terms.key_lengths ? terms.key_lengths.template data<int32_t>() : nullptr) {}

  T factor() const { return static_cast<T>(static_cast<double>(scale) * log2_e); }
  int64_t keys_of(int64_t b) const {
    return key_lengths == nullptr ? Tk : std::clamp<int64_t>(key_lengths[b], 0, Tk);
  }
  int64_t flops_of_head() const {
    return 2 * std::max<int64_t>(1, pattern.kept() / std::max<int64_t>(1, pattern.heads)) * (d + dv);
  }
};

template <class T>
void forward(const Tensor& q, const Tensor& k, const Tensor& v, const BlockTerms& terms, const Tensor& out,
             const Tensor& lse) {
  const Call<T> call(q, k, v, terms);
  const Heads<const T> qs(q), ks(k), vs(v);
  const Heads<T> outs(out);
  T* sums = lse.data<T>();
  const Plan plan(call.pattern);
  const int64_t tiles = pieces_of(call.Tq, tile);
  const int64_t numbers = ForwardTile<T>::scratch(call.d, call.dv) + ForwardRow<T>::scratch(call.d, call.dv);
  Scratch scratch(static_cast<int64_t>(sizeof(Walker<T>) + sizeof(T) * numbers));
  const int64_t each = call.flops_of_head() / std::max<int64_t>(1, tiles) + 1;
  parallel_rows(call.B * call.H * tiles, piece_flops / each, [&](int64_t begin, int64_t end) {
    const Scratch::Part part(scratch);
    auto& walker = *part.template data<Walker<T>>();
    Carve<T> carve(reinterpret_cast<T*>(&walker + 1));
    ForwardTile<T> work(carve.take(ForwardTile<T>::scratch(call.d, call.dv)), call.d, call.dv);
    ForwardRow<T> row(carve.take(0), call.d, call.dv);
    int64_t flops = 0;
    for (int64_t at = begin; at < end; ++at) {
      const int64_t b = at / tiles / call.H, h = at / tiles % call.H, keys = call.keys_of(b);
      const Rows<T> k_rows{ks.at(b, h, 0), ks.ld}, v_rows{vs.at(b, h, 0), vs.ld};
      T* head_sums = sums + (b * call.H + h) * call.Tq;
      plan.each_part(h, at % tiles, call.Tq, [&](int64_t i, int64_t count, bool one_by_one) {
        for (int64_t q_row = i; one_by_one && q_row < i + count; ++q_row) {
          row.start(qs.at(b, h, q_row), call.factor());
          each_pick(call.pattern, h, q_row, keys,
                    [&](Picked picked) { flops += row.keys(k_rows, v_rows, picked, nullptr); });
          row.finish(outs.at(b, h, q_row), head_sums + q_row);
        }
        if (one_by_one) return;
        work.start(qs.at(b, h, i), qs.ld, count, call.factor());
        walker.start(call.pattern, h, i, count, keys);
        for (int64_t j = 0, length = 0; walker.next(j, length);) {
          Stairs stairs;
          stairs.add(0, length);
          flops += work.keys(k_rows.from(j).data, ks.ld, v_rows.from(j).data, vs.ld, stairs,
                             {.visible = &walker.visible});
        }
        work.finish(outs.at(b, h, i), outs.ld, head_sums + i);
      });
    }
    Count::add(flops);
  });
}

template <class T>
void backward(const Tensor& q, const Tensor& k, const Tensor& v, const BlockTerms& terms, const Tensor& out,
              const Tensor& lse, const Tensor& dout, const Tensor& dq, const Tensor& dk, const Tensor& dv) {
  const Call<T> call(q, k, v, terms);
  const Heads<const T> qs(q), ks(k), vs(v), outs(out), douts(dout);
  const Heads<T> dqs(dq), dks(dk), dvs(dv);
  const T* sums = lse.data<T>();
  const Plan plan(call.pattern);
  const int64_t tiles = pieces_of(call.Tq, tile);
  const int64_t wide_d = simd::padded<T>(call.d), wide_dv = simd::padded<T>(call.dv);
  const int64_t sums_d = Carve<T>::rounded(call.Tk * wide_d), sums_dv = Carve<T>::rounded(call.Tk * wide_dv);
  const int64_t copied = (wide_d == call.d ? 0 : sums_d) + (wide_dv == call.dv ? 0 : sums_dv);
  const int64_t numbers = BackTile<T>::scratch(call.d, call.dv) + BackRow<T>::scratch(call.d, call.dv) +
                          sums_d + sums_dv + copied;
  Scratch scratch(static_cast<int64_t>(sizeof(Walker<T>) + sizeof(T) * numbers));
  parallel_rows(call.B * call.H, piece_flops / (2 * call.flops_of_head()), [&](int64_t begin, int64_t end) {
    const Scratch::Part part(scratch);
    auto& walker = *part.template data<Walker<T>>();
    Carve<T> carve(reinterpret_cast<T*>(&walker + 1));
    T *dk_sum = carve.take(call.Tk * wide_d), *dv_sum = carve.take(call.Tk * wide_dv);
    T* k_copy = carve.take(wide_d == call.d ? 0 : call.Tk * wide_d);
    T* v_copy = carve.take(wide_dv == call.dv ? 0 : call.Tk * wide_dv);
    BackTile<T> work(carve.take(BackTile<T>::scratch(call.d, call.dv)), call.d, call.dv);
    BackRow<T> row(carve.take(0), call.d, call.dv);
    int64_t flops = 0;
    for (int64_t at = begin; at < end; ++at) {
      const int64_t b = at / call.H, h = at % call.H, keys = call.keys_of(b);
      std::fill_n(dk_sum, keys * wide_d, T(0));
      std::fill_n(dv_sum, keys * wide_dv, T(0));
      const Rows<T> k_rows = whole_rows(ks.at(b, h, 0), ks.ld, keys, call.d, k_copy);
      const Rows<T> v_rows = whole_rows(vs.at(b, h, 0), vs.ld, keys, call.dv, v_copy);
      const T* head_sums = sums + (b * call.H + h) * call.Tq;
      const auto part_of_tile = [&](int64_t i, int64_t count, bool one_by_one) {
        for (int64_t q_row = i; one_by_one && q_row < i + count; ++q_row) {
          row.start(qs.at(b, h, q_row), douts.at(b, h, q_row), outs.at(b, h, q_row), head_sums[q_row],
                    call.factor());
          each_pick(call.pattern, h, q_row, keys,
                    [&](Picked picked) { flops += row.keys(k_rows, v_rows, picked, dk_sum, dv_sum); });
          row.finish(dqs.at(b, h, q_row), call.scale);
        }
        if (one_by_one) return;
        work.start(qs.at(b, h, i), qs.ld, douts.at(b, h, i), douts.ld, outs.at(b, h, i), outs.ld,
                   head_sums + i, count, call.factor());
        walker.start(call.pattern, h, i, count, keys);
        for (int64_t j = 0, length = 0; walker.next(j, length);) {
          Stairs stairs;
          stairs.add(0, length);
          flops += work.keys(k_rows.from(j), v_rows.from(j), stairs, {.visible = &walker.visible},
                             dk_sum + j * wide_d, dv_sum + j * wide_dv);
        }
        work.finish(dqs.at(b, h, i), dqs.ld, call.scale);
      };
      for (int64_t t = 0; t < tiles; ++t) plan.each_part(h, t, call.Tq, part_of_tile);
      for (int64_t r = 0; r < keys; ++r) {
        simd::scaled(dk_sum + r * wide_d, call.d, call.scale, dks.at(b, h, r));
        simd::scaled(dv_sum + r * wide_dv, call.dv, T(1), dvs.at(b, h, r));
      }
      zero_rows(dks.at(b, h, keys), dks.ld, call.Tk - keys, call.d);
      zero_rows(dvs.at(b, h, keys), dvs.ld, call.Tk - keys, call.dv);
    }
    Count::add(flops);
  });
}

}  // namespace

int64_t Pattern::kept() const {
  int64_t total = 0;
  for (const Run& run : runs) total += run.end - run.begin;
  return total;
}

template <>
void BlockAttention::cpu<here>(const Tensor& q, const Tensor& k, const Tensor& v, const BlockTerms& terms,
                               const Tensor& out, const Tensor& lse) {
  visit_float("block_attention", q.dtype(),
              [&](auto type) { forward<typename decltype(type)::type>(q, k, v, terms, out, lse); });
}

template <>
void BlockAttentionBack::cpu<here>(const Tensor& q, const Tensor& k, const Tensor& v, const BlockTerms& terms,
                                   const Tensor& out, const Tensor& lse, const Tensor& dout, const Tensor& dq,
                                   const Tensor& dk, const Tensor& dv) {
  visit_float("block_attention", q.dtype(), [&](auto type) {
    backward<typename decltype(type)::type>(q, k, v, terms, out, lse, dout, dq, dk, dv);
  });
}

}  // namespace heed::kernel
