// Bands and sparse places.
#include "attention/banded.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace heed {
namespace {

Tensor pairs_of(const Tensor& scores, int64_t first, int64_t width, bool inside) {
  const int64_t queries = scores.extent(2), keys = scores.extent(3);
  std::vector<uint8_t> pairs(static_cast<size_t>(queries * keys), inside ? 0 : 1);
  for (int64_t i = 0; i < queries; ++i) {
    const int64_t at = first + i;
    const int64_t begin = std::clamp<int64_t>(at - width, 0, keys),
                  end = std::clamp<int64_t>(at + width + 1, begin, keys);
    std::fill(pairs.begin() + i * keys + begin, pairs.begin() + i * keys + end,
              static_cast<uint8_t>(inside ? 1 : 0));
  }
  return Tensor::of<uint8_t>(pairs, Shape{queries, keys}, scores.device());
}

}  // namespace

Tensor band_of(const Tensor& scores, int64_t first, int64_t width) {
  return pairs_of(scores, first, width, true);
}

Tensor outside_band(const Tensor& scores, int64_t first, int64_t width) {
  return pairs_of(scores, first, width, false);
}

Tensor sparse_places(const char* name, int64_t longest, double density, Rng& rng) {
  if (!(density >= 0 && density <= 1))
    fail("attention '", name, "': density = ", density, ". It is a share of pairs, from 0 to 1.");
  if (longest < 1) {
    fail("attention '", name,
         "': places of errors are drawn for the longest input, which is not known here. Set max_length.");
  }
  const int64_t all = longest * longest, free = all - longest;
  const double wanted = density > 0 ? density * static_cast<double>(all) : static_cast<double>(longest);
  const int64_t count = std::min<int64_t>(std::max<int64_t>(1, std::llround(wanted)), free);
  if (count == 0) return {};
  // Floyd's sampling: each set of places is as likely as any other. Places count without the diagonal at
  // first.
  std::set<int64_t> taken;
  for (int64_t n = free - count; n < free; ++n) {
    const int64_t pick = rng.below(n + 1);
    taken.insert(taken.contains(pick) ? n : pick);
  }
  std::vector<int32_t> places;
  for (const int64_t n : taken) places.push_back(static_cast<int32_t>(n + n / longest + 1));
  return Tensor::of<int32_t>(places, Shape{1, 1, static_cast<int64_t>(places.size())});
}

void check_longest(const char* name, int64_t length, int64_t longest) {
  if (length > longest) {
    fail("attention '", name, "': ", length, " tokens, but its matrix was made for ", longest,
         ". Raise max_length.");
  }
}

}  // namespace heed
