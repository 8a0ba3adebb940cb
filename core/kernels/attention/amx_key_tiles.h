// Keys or values of all heads in bf16, packed for the matrix tiles of AMX.
#pragma once

#include <vector>

#include "heed/core/kernels/attention/attention_tiles.h"
#include "heed/core/kernels/gemm/gemm_bf16.h"

namespace heed::kernel::amx {

/// Extents of tiles in memory: whole matrix tiles of sixteen rows.
constexpr int64_t whole(int64_t rows) { return ceil_div(rows, 16) * 16; }

/// Pairs of 64 keys or queries.
inline constexpr int64_t pairs_of_tile = bf16_tiles::pairs_of(tile);

/// The rows x [keys, width] of each key head, in tiles of 64 keys that are left factors of products: by rows
/// [64, pairs of the width], or by columns [width, 32 pairs of keys].
class KeyTiles {
 public:
  enum class By { rows, columns };

  KeyTiles(By by, const HeadView<const float>& x, int64_t width, const AttentionCall<float>& call)
      : kv_heads_(call.H / call.group),
        words_per_tile_(by == By::rows ? tile * bf16_tiles::pairs_of(width) : whole(width) * pairs_of_tile),
        first_tiles_(first_tiles(call)),
        memory_(first_tiles_.back() * kv_heads_ * words_per_tile_ * 4, Device::cpu) {
    const int64_t tiles_per_head = ceil_div(call.Tk, tile);
    parallel_rows(call.B * kv_heads_ * tiles_per_head, ceil_div(light_grain, tile * width),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t index = begin; index < end; ++index) {
                      const int64_t head = index / tiles_per_head, b = head / kv_heads_, h = head % kv_heads_,
                                    first = index % tiles_per_head * tile,
                                    keys = std::min(tile, call.num_keys(b) - first);
                      if (keys <= 0) continue;
                      const float* rows = x.at(b, h, first);
                      auto* words = const_cast<uint32_t*>(at(b, h, first));
                      if (by == By::rows)
                        bf16_tiles::pack_contiguous_rows(rows, x.ld, keys, width, words);
                      else
                        bf16_tiles::pack_strided_rows(rows, x.ld, width, keys, pairs_of_tile, words);
                    }
                  });
  }

  /// The tile that begins with key `first` of a head.
  const uint32_t* at(int64_t b, int64_t kv_head, int64_t first) const {
    const int64_t tiles = first_tiles_[static_cast<size_t>(b) + 1] - first_tiles_[static_cast<size_t>(b)];
    const int64_t index = first_tiles_[static_cast<size_t>(b)] * kv_heads_ + kv_head * tiles + first / tile;
    return static_cast<const uint32_t*>(memory_.data()) + index * words_per_tile_;
  }

 private:
  /// The number of tiles of a head of the sequences before each, and of all: [B + 1].
  static std::vector<int64_t> first_tiles(const AttentionCall<float>& call) {
    std::vector<int64_t> first{0};
    for (int64_t b = 0; b < call.B; ++b) first.push_back(first.back() + ceil_div(call.num_keys(b), tile));
    return first;
  }

  int64_t kv_heads_, words_per_tile_;
  std::vector<int64_t> first_tiles_;
  Storage memory_;
};

}  // namespace heed::kernel::amx
