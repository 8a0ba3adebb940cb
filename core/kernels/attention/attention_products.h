// The products that tiled attention is made of, told to whoever keeps a ProductLog.
#pragma once

#include <algorithm>
#include <map>

#include "core/count.h"
#include "core/kernels/attention_tile.h"

namespace heed::kernel {

/// Notes the products of a call, step by step as its tiles do them: forward the scores and the sums; back the
/// scores again and the gradients of the weights, v, k and q. `Call` is the kernel's own description of a
/// call.
template <class Call>
void note_products(const Call& call, bool back) {
  std::map<Product, int64_t> found;
  for (int64_t b = 0; b < call.B; ++b) {
    for (int64_t i = 0; i < call.Tq; i += tile) {
      const int64_t queries = std::min(tile, call.Tq - i), seen = call.keys_before(b, i + queries);
      for (int64_t j = 0; j < seen; j += tile) {
        const int64_t count = std::min(tile, seen - j);
        Stairs stairs;
        const int64_t ahead = call.causal ? i + call.first_query + 1 - j : count;
        if (ahead < count) {
          for (int64_t g = 0; g < queries; g += Stairs::group) {
            const int64_t end = std::min(g + Stairs::group, queries);
            stairs.add({g, end, 0, std::clamp<int64_t>(ahead + end - 1, 0, count)});
          }
        } else {
          stairs.add({0, queries, 0, count});
        }
        stairs.each_rectangle([&](const Stairs::Step& s) {
          const int64_t keys = s.high - s.low, rest = s.to - s.from;
          found[{1, keys, rest, call.d, false, false, false}] += call.H;  // scores, [key, query]
          if (!back) return;
          found[{1, keys, rest, call.dv, false, false, false}] += call.H;
          found[{1, keys, call.dv, rest, false, false, true}] += call.H;
          found[{1, keys, call.d, rest, false, false, true}] += call.H;
        });
        stairs.each([&](const Stairs::Step& s) {
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
