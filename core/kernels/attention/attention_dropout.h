// Dropout masks of tiles on the CPU, with the random numbers of core/kernels/elementwise/dropout.h.
#pragma once

#include "heed/core/ceil_div.h"
#include "heed/core/kernels/attention/attention_tile.h"
#include "heed/core/kernels/elementwise/dropout.h"

namespace heed::kernel {

/// The dropout of one attention call. Every weight has an index, AttentionShape::dropout_index(), whose
/// random bits decide whether it is kept. They are drawn for blocks of 16 consecutive indices.
struct DropoutParams {
  simd::KeepBits keep_bits;

  static DropoutParams of(double p, const Draw& draw) {
    return {{draw.seed, Draw::high(draw.stream, *draw.tick.data<int64_t>()), dropout_threshold(p)}};
  }

  using Counters = simd::Counters;
  static constexpr int lanes = simd::KeepBits::lanes;
  static constexpr uint64_t indices_per_block = simd::KeepBits::block;

  /// Draws the mask of a tile [queries, keys]: bit j of query i is set where dropout keeps index first + i *
  /// row_stride + j. Query i needs only the bits of keys below seen_by_first + i. Vector lanes are queries.
  template <class T>
  void draw_keep_mask(uint64_t first, uint64_t row_stride, int64_t queries, int64_t keys,
                      int64_t seen_by_first, PairBits<T>& keep_mask) const {
    const uint64_t max_skipped =
        row_stride % indices_per_block == 0 ? first % indices_per_block : indices_per_block - 1;
    for (int64_t i = 0; i < queries; i += lanes) {
      Counters row_first;
      for (int lane = 0; lane < lanes; ++lane)
        row_first[lane] = first + static_cast<uint64_t>(i + lane) * row_stride;
      const int64_t count = std::clamp<int64_t>(seen_by_first + i + lanes - 1, 0, keys);
      const Counters kept = keep_bits_from(row_first, count, max_skipped);
      for (int lane = 0; lane < lanes && i + lane < tile; ++lane) keep_mask.set(i + lane, kept[lane]);
    }
  }

  /// For each lane the keep bits of `count` indices (at most 64) from first[lane] on; higher bits are
  /// undefined. max_skipped is at least first[lane] % 16 of every lane.
  Counters keep_bits_from(Counters first, int64_t count, uint64_t max_skipped) const {
    const Counters skipped = first & (indices_per_block - 1), first_block = first / indices_per_block;
    Counters low = {}, high = {};  // bits 0 to 63 and 64 to 79, counted from the first block
    const int64_t blocks =
        ceil_div(static_cast<int64_t>(max_skipped) + count, static_cast<int64_t>(indices_per_block));
    for (int64_t b = 0; b < blocks; ++b) {
      const Counters kept = keep_bits.keep_masks(first_block + static_cast<uint64_t>(b));
      if (b < 4) {
        low |= kept << (16 * b);
      } else {
        high = kept;
      }
    }
    return (low >> skipped) | ((high << 1) << (63 - skipped));
  }

  /// factors[n] = keep_scale where dropout keeps index row_first + key_index[n], else 0. Vector lanes are
  /// keys.
  template <class T>
  void keep_factors(uint64_t row_first, const int32_t* key_index, int64_t count, T keep_scale,
                    T* factors) const {
    for (int64_t n = 0; n < count; n += lanes) {
      Counters indices = {};
      for (int lane = 0; lane < lanes && n + lane < count; ++lane)
        indices[lane] = row_first + static_cast<uint64_t>(key_index[n + lane]);
      const Counters kept =
          keep_bits.keep_masks(indices / indices_per_block) >> (indices & (indices_per_block - 1));
      for (int lane = 0; lane < lanes && n + lane < count; ++lane)
        factors[n + lane] = (kept[lane] & 1) != 0 ? keep_scale : T(0);
    }
  }
};

}  // namespace heed::kernel
