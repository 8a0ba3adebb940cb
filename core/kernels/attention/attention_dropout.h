// The dropout masks of tiles on the CPU, from the counters that core/kernels/elementwise/dropout.h defines.
#pragma once

#include "heed/core/ceil_div.h"
#include "heed/core/kernels/attention/attention_tile.h"
#include "heed/core/kernels/elementwise/dropout.h"

namespace heed::kernel {

/// The dropout of one attention call.
struct DropoutParams {
  simd::KeepBits bits;

  static DropoutParams of(double p, const Draw& draw) {
    return {{draw.seed, Draw::high(draw.stream, *draw.tick.data<int64_t>()), dropout_threshold(p)}};
  }

  using U = simd::Counters;
  static constexpr int lanes = simd::KeepBits::lanes;
  static constexpr uint64_t block = simd::KeepBits::block;

  /// Fills the mask of [queries, 64] pairs: bit j of query i belongs to element first + i * row + j. Query i
  /// needs the keys below first_sees + i alone.
  template <class T>
  void fill(uint64_t first, uint64_t row, int64_t queries, int64_t keys, int64_t first_sees,
            PairBits<T>& keep_mask) const {
    const uint64_t skipped = row % block == 0 ? first % block : block - 1;
    for (int64_t i = 0; i < queries; i += lanes) {
      U element;
      for (int lane = 0; lane < lanes; ++lane) element[lane] = first + static_cast<uint64_t>(i + lane) * row;
      const U kept = from(element, std::clamp<int64_t>(first_sees + i + lanes - 1, 0, keys), skipped);
      for (int lane = 0; lane < lanes && i + lane < tile; ++lane) keep_mask.set(i + lane, kept[lane]);
    }
  }

  /// For each lane: the bits of `count` elements (at most 64) from `element` on; higher bits are undefined.
  /// `before`: the most elements of its first block that lie before `element` in any lane.
  U from(U element, int64_t count, uint64_t before) const {
    const U skipped = element & (block - 1), first = element / block;
    U low = {}, high = {};
    const int64_t blocks = ceil_div(static_cast<int64_t>(before) + count, static_cast<int64_t>(block));
    for (int64_t b = 0; b < blocks; ++b) {
      const U kept = bits.keep_masks(first + static_cast<uint64_t>(b));
      if (b < 4) {
        low |= kept << (16 * b);
      } else {
        high = kept;
      }
    }
    return (low >> skipped) | ((high << 1) << (63 - skipped));
  }

  /// factors[n] = `scale` where element row + index[n] is kept, else 0; index ascends.
  template <class T>
  void factors(uint64_t row, const int32_t* index, int64_t count, T scale, T* to) const {
    for (int64_t n = 0; n < count; n += lanes) {
      U element = {};
      for (int lane = 0; lane < lanes && n + lane < count; ++lane)
        element[lane] = row + static_cast<uint64_t>(index[n + lane]);
      const U kept = bits.keep_masks(element / block) >> (element & (block - 1));
      for (int lane = 0; lane < lanes && n + lane < count; ++lane)
        to[n + lane] = (kept[lane] & 1) != 0 ? scale : T(0);
    }
  }
};

}  // namespace heed::kernel
