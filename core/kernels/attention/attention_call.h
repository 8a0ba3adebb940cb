// An attention call on the CPU, and the mask, bias and dropout of one tile.
#pragma once

#include "heed/core/kernels/attention/attention.h"
#include "heed/core/kernels/attention/attention_dropout.h"
#include "heed/core/kernels/attention/attention_tile.h"

namespace heed::kernel {

/// Extents, score settings and dropout of a call.
template <class T>
struct Call : AttentionScores<T> {
  DropoutTerms dropout;

  Call(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionTerms& terms)
      : AttentionScores<T>(q, k, v, terms) {
    if (this->dropped) dropout = DropoutTerms::of(terms.dropout, terms.draw);
  }
  /// True for heads so short that the hardware prefetcher cannot learn their layout.
  bool short_heads() const { return this->Tq <= 2 * tile && this->Tk <= 2 * tile; }
  /// Number of visible pairs of all heads.
  int64_t pairs() const {
    int64_t total = 0;
    for (int64_t b = 0; b < this->B; ++b) {
      for (int64_t i = 0; this->causal && i < this->Tq; ++i) total += this->keys_before(b, i + 1);
      if (!this->causal) total += this->Tq * this->keys_of(b);
    }
    return total * this->H;
  }
};

/// The modifiers of one tile of queries and one tile of keys, with their memory.
template <class T>
struct StepTerms {
  PairBits<T> visible, keep_mask;
  alignas(64) T bias[tile * tile];
  TileMask tile_mask;
  ScoreModifiers<T> modifiers;

  /// Fills in everything for queries [i, i + queries) against keys [j, j + keys).
  void prepare(const Call<T>& call, int64_t b, int64_t h, int64_t i, int64_t queries, int64_t j,
               int64_t keys) {
    tile_mask.steps = 0;
    modifiers = {};
    modifiers.cap = call.cap;
    if (call.causal && i + call.first_query + 1 < j + keys) {
      const int64_t ahead = i + call.first_query + 1 - j;  // keys of this step that the first query sees
      for (int64_t g = 0; g < queries; g += TileMask::group) {
        const int64_t end = std::min(g + TileMask::group, queries);
        tile_mask.add({g, end, 0, std::clamp<int64_t>(ahead + end - 1, 0, keys)});
      }
      for (int64_t lane = 0; lane < simd::padded<T>(queries); ++lane)
        visible.set(lane, low_bits(ahead + lane));
      modifiers.visible = &visible;
    } else {
      tile_mask.add({0, queries, 0, keys});
    }
    if (call.bias != nullptr) add_bias(call, b, h, i, queries, j, keys);
    if (call.relative != nullptr) add_relative(call, h, i, queries, j, keys);
    if (call.added()) modifiers.bias = bias;
    if (call.dropped) {
      call.dropout.fill(call.element(b, h, i, j), static_cast<uint64_t>(call.Tk), queries, keys, keep_mask);
      modifiers.keep_mask = &keep_mask;
      modifiers.keep_scale = call.keep_scale;
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
      simd::scaled_transpose(from, stride[2], queries, keys, unit, bias, width);
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
