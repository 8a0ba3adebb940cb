// Reports the matrix products of a tiled attention call to the ProductLog.
#pragma once

#include <map>
#include <memory>

#include "heed/core/kernels/attention/dense_tiles.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {

/// Records the products of a call tile by tile. Forward: scores and outputs. Backward: scores again, and the
/// gradients of weights, v, k and q.
template <class T>
void note_products(const DenseTiles<T>& tiles, bool back) {
  const Call<T>& call = tiles.call;
  const auto step = std::make_unique<StepParams<T>>();
  std::map<Product, int64_t> found;
  const auto note = [&](const TileRows&) {
    step->tile_mask.each_rectangle([&](const TileMask::Step& s) {
      const int64_t keys = s.high - s.low, rest = s.to - s.from;
      found[{1, keys, rest, call.d, false, false, false}] += call.H;  // scores, [key, query]
      if (!back) return;
      found[{1, keys, rest, call.dv, false, false, false}] += call.H;
      found[{1, keys, call.dv, rest, false, false, true}] += call.H;
      found[{1, keys, call.d, rest, false, false, true}] += call.H;
    });
    step->tile_mask.each([&](const TileMask::Step& s) {
      found[{1, s.to - s.from, back ? call.d : call.dv, s.high - s.low, true, false, true}] += call.H;
    });
  };
  for (int64_t b = 0; b < call.B; ++b) {
    for (int64_t n = 0; n < tiles.max_query_tiles(); ++n)
      tiles.each_key_tile(tiles.query_tile(b, 0, 0, n), 0, call.Tk, *step, note);
  }
  for (const auto& [one, count] : found) {
    Product all = one;
    all.batch = count;
    ProductLog::note(all);
  }
}

}  // namespace heed::kernel
