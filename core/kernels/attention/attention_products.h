// Reports the matrix products of a tiled attention call to the ProductLog.
#pragma once

#include <algorithm>
#include <map>

#include "heed/core/kernels/attention/attention_tile.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {

/// Records the products of a call tile by tile. Forward: scores and outputs. Backward: scores again, and the
/// gradients of weights, v, k and q.
template <class Call>
void note_products(const Call& call, bool back) {
  std::map<Product, int64_t> found;
  for (int64_t b = 0; b < call.B; ++b) {
    for (int64_t i = 0; i < call.Tq; i += tile) {
      const int64_t queries = std::min(tile, call.Tq - i), seen = call.keys_before(b, i + queries);
      for (int64_t j = 0; j < seen; j += tile) {
        const int64_t count = std::min(tile, seen - j);
        TileMask tile_mask;
        const int64_t ahead = call.causal ? i + call.first_query + 1 - j : count;
        if (ahead < count) {
          for (int64_t g = 0; g < queries; g += TileMask::group) {
            const int64_t end = std::min(g + TileMask::group, queries);
            tile_mask.add({g, end, 0, std::clamp<int64_t>(ahead + end - 1, 0, count)});
          }
        } else {
          tile_mask.add({0, queries, 0, count});
        }
        tile_mask.each_rectangle([&](const TileMask::Step& s) {
          const int64_t keys = s.high - s.low, rest = s.to - s.from;
          found[{1, keys, rest, call.d, false, false, false}] += call.H;  // scores, [key, query]
          if (!back) return;
          found[{1, keys, rest, call.dv, false, false, false}] += call.H;
          found[{1, keys, call.dv, rest, false, false, true}] += call.H;
          found[{1, keys, call.d, rest, false, false, true}] += call.H;
        });
        tile_mask.each([&](const TileMask::Step& s) {
          found[{1, s.to - s.from, back ? call.d : call.dv, s.high - s.low, true, false, true}] += call.H;
        });
      }
    }
  }
  for (const auto& [one, count] : found) {
    Product all = one;
    all.batch = count;
    ProductLog::note(all);
  }
}

}  // namespace heed::kernel
