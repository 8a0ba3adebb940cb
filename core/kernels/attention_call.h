// A call to tiled attention as its pieces read it, and what stands between the scores and weights of a tile.
#pragma once

#include "core/kernels/attention.h"
#include "core/kernels/attention_dropout.h"
#include "core/kernels/attention_tile.h"

namespace heed::kernel {

/// Everything of a call that its pieces read.
template <class T>
struct Call {
  int64_t B, H, group, Tq, Tk, d, dv;  // group: query heads that share keys
  bool causal;
  int64_t first_query;
  T scale;
  const int32_t* key_lengths;
  const T* bias;
  int64_t bias_stride[4] = {0, 0, 0, 0};
  const T* relative;
  const T* sink;
  T cap;
  bool dropped;
  DropoutTerms dropout;
  T keep_scale;

  Call(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionTerms& terms)
      : B(q.extent(0)),
        H(q.extent(1)),
        group(q.extent(1) / std::max<int64_t>(k.extent(1), 1)),
        Tq(q.extent(2)),
        Tk(k.extent(2)),
        d(q.extent(3)),
        dv(v.extent(3)),
        causal(terms.causal),
        first_query(terms.first_query),
        scale(static_cast<T>(terms.scale)),
        key_lengths(terms.key_lengths ? terms.key_lengths.template data<int32_t>() : nullptr),
        bias(terms.bias ? terms.bias.template data<T>() : nullptr),
        relative(terms.relative ? terms.relative.template data<T>() : nullptr),
        sink(terms.sink ? terms.sink.template data<T>() : nullptr),
        cap(static_cast<T>(terms.softcap * log2_e)),
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
  bool added() const { return bias != nullptr || relative != nullptr; }
  /// What is added to the scores of key j and the queries from i on.
  const T* relative_at(int64_t h, int64_t i, int64_t j) const {
    return relative + h * (Tq + Tk - 1) + i - j + Tk - 1;
  }
  T sink_of(int64_t h) const {
    return sink == nullptr ? -std::numeric_limits<T>::infinity() : sink[h] * static_cast<T>(log2_e);
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
    between.cap = call.cap;
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
    if (call.bias != nullptr) add_bias(call, b, h, i, queries, j, keys);
    if (call.relative != nullptr) add_relative(call, h, i, queries, j, keys);
    if (call.added()) between.bias = bias;
    if (call.dropped) {
      const uint64_t row = (static_cast<uint64_t>(b) * call.H + h) * call.Tq + i;
      call.dropout.fill(row * call.Tk + j, static_cast<uint64_t>(call.Tk), queries, keys, kept);
      between.kept = &kept;
      between.keep_scale = call.keep_scale;
    }
  }

 private:
  void add_relative(const Call<T>& call, int64_t h, int64_t i, int64_t queries, int64_t j, int64_t keys) {
    const int64_t width = simd::padded<T>(queries);
    if (call.bias == nullptr) std::fill_n(bias, keys * width, T(0));
    for (int64_t key = 0; key < keys; ++key) {
      const T* from = call.relative_at(h, i, j + key);
      for (int64_t q = 0; q < queries; ++q) bias[key * width + q] += from[q] * static_cast<T>(log2_e);
    }
  }

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

}  // namespace heed::kernel
