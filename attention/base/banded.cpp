// Banded softmax, banded products and sparse matrix positions.
#include "heed/attention/base/banded.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "heed/core/constant_table.h"
#include "heed/core/sparse_pattern.h"

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
  return constant_table<uint8_t>(pairs, Shape{queries, keys}, scores.device());
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
  if (longest > 46340) {  // the square root of 2^31: positions are i32
    fail("attention '", name, "': max_length = ", longest,
         ", but errors are placed among the pairs of at most 46340 tokens. Lower max_length.");
  }
  const int64_t all = longest * longest, free = all - longest;
  const double wanted = density > 0 ? density * static_cast<double>(all) : static_cast<double>(longest);
  const int64_t count = std::min<int64_t>(std::max<int64_t>(1, std::llround(wanted)), free);
  if (count == 0) return {};
  // Floyd's sampling: every set of positions is equally likely. Positions skip the diagonal until the loop
  // below.
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

SeenPlaces seen_places(const std::vector<int64_t>& places, int64_t longest, const KeyRange& key_range,
                       int64_t width, bool within) {
  SeenPlaces seen;
  for (size_t n = 0; n < places.size(); ++n) {
    const int64_t i = places[n] / longest, j = places[n] % longest;
    const int64_t row = i - key_range.first_query, column = j - key_range.first_key;
    if (row < 0 || row >= key_range.queries || column < 0 || column >= key_range.keys) continue;
    if ((key_range.causal && j > i) || (std::abs(i - j) <= width) != within) continue;
    seen.which.push_back(static_cast<int32_t>(n));
    seen.queries.push_back(static_cast<int32_t>(row));
    seen.keys.push_back(static_cast<int32_t>(column));
  }
  return seen;
}

Tensor row_ids(const std::vector<int32_t>& ids, Device device) {
  return constant_table<int32_t>(ids, Shape{1, 1, static_cast<int64_t>(ids.size())}, device);
}

Tensor band_product(const Tensor& band, const Tensor& v, const KeyRange& key_range, double rate, Rng* rng) {
  const int64_t width = (band.extent(3) - 1) / 2, queries = band.extent(2), h = band.extent(1),
                batch = v.extent(0), dv = v.extent(3);
  // Blocks of queries, each with the union of their keys.
  const int64_t rows = std::max<int64_t>(width, 1), wide = rows + 2 * width,
                blocks = (queries + rows - 1) / rows;
  std::vector<int32_t> ids;
  for (int64_t n = 0; n < blocks; ++n) {
    const int64_t begin = key_range.first_query + n * rows - width - key_range.first_key;
    for (int64_t key = begin; key < begin + wide; ++key)
      ids.push_back(static_cast<int32_t>(key >= 0 && key < key_range.keys ? key : -1));
  }
  const Tensor near = reshape(gather_rows(v, row_ids(ids, v.device())), Shape{batch, h, blocks, wide, dv});
  Tensor cells = band;
  if (const int64_t rest = blocks * rows - queries; rest > 0) {
    Shape blank = band.shape();
    blank[2] = rest;
    cells = concat(std::vector<Tensor>{cells, Tensor::zeros(blank, band.dtype(), band.device())}, 2);
  }
  // Row r of a block starts at column r: pad rows to wide + 1 numbers and read them as rows of `wide`.
  const Shape shape{band.extent(0), h, blocks, rows, rows};
  const Tensor long_rows =
      concat(std::vector<Tensor>{reshape(cells, Shape{shape[0], h, blocks, rows, 2 * width + 1}),
                                 Tensor::zeros(shape, band.dtype(), band.device())},
             4);
  Tensor line = slice(reshape(long_rows, Shape{shape[0], h, blocks, rows * (wide + 1)}), 3, 0, rows * wide);
  // Entries are dropped as the product reads them: a band for each sequence would be copied once more to be
  // padded.
  if (rng != nullptr && rate > 0)
    line = dropout(expand(line, Shape{batch, h, blocks, rows * wide}), rate, rng);
  const Tensor products = matmul(reshape(line, Shape{line.extent(0), h, blocks, rows, wide}), near);
  return slice(reshape(products, Shape{batch, h, blocks * rows, dv}), 2, 0, queries);
}

BandedAttention::BandedAttention(const AttentionConfig& config, Rng& rng, int64_t width, double scale)
    : ScoredAttention(config, rng), width_(width), scale_(scale) {}

double BandedAttention::scale(const Tensor& q) const {
  return scale_ != 0 ? scale_ : 1 / std::sqrt(static_cast<double>(q.extent(3)));
}

Tensor BandedAttention::score(const Tensor& q, const Tensor& k, const AttentionInput&) const {
  return matmul(q, transpose(k, 2, 3)) * scale(q);
}

kernel::Pattern BandedAttention::make_pattern(const KeyRange& key_range) const {
  kernel::Pattern pattern;
  pattern.queries = key_range.queries;
  pattern.keys = key_range.keys;
  pattern.first.push_back(0);
  for (int64_t i = key_range.first_query; i < key_range.first_query + key_range.queries; ++i) {
    const int64_t begin = std::max<int64_t>(0, i - width_),
                  end = std::min(key_range.keys, i + (key_range.causal ? 0 : width_) + 1);
    if (begin < end) pattern.runs.push_back({static_cast<int32_t>(begin), static_cast<int32_t>(end)});
    pattern.first.push_back(static_cast<int64_t>(pattern.runs.size()));
  }
  return pattern;
}

Tensor BandedAttention::elsewhere(const Heads&, const Tensor&, const AttentionInput&, const KeyRange&) const {
  return {};
}

Tensor BandedAttention::attend(Heads heads, const AttentionInput& input) {
  const int64_t first = read_cache(heads, input);
  if (input.context.recorder != nullptr)
    input.context.recorder->factors(*this, heads.q, heads.k, scale(heads.q));
  if (modifiers().on_scores() || input.mask.bias()) return attend_by_map(heads, input, first);
  if (input.context.recorder != nullptr) {
    const NoGrad no_grad;
    input.context.recorder->record(*this, weights(heads, input, first));
  }
  const KeyRange key_range{.first_query = first,
                           .queries = heads.q.extent(2),
                           .first_key = 0,
                           .keys = heads.k.extent(2),
                           .causal = input.mask.is_causal()};
  const int64_t dv = heads.v.extent(3);
  const kernel::AttentionParams plain{.scale = scale(heads.q),
                                      .causal = key_range.causal,
                                      .first_query = first,
                                      .key_lengths = input.mask.key_lengths()};
  const kernel::AttentionParams dropped = params(input, plain.scale);
  const auto pattern = patterns_.get(key_range, [&] { return make_pattern(key_range); });
  const Tensor band = pattern_attention_with_sums(heads.q, heads.k, heads.v,
                                                  {.scale = plain.scale,
                                                   .pattern = pattern,
                                                   .key_lengths = plain.key_lengths,
                                                   .dropout = dropped.dropout,
                                                   .draw = dropped.draw});
  const Tensor inside = slice(band, 3, 0, dv);
  if (renormalised()) return inside;
  // Log-sum-exp of each row; -1e30 instead of -inf, so that rows without keys give no NaN.
  const auto log_sum = [](const Tensor& with_sums) {
    const int64_t last = with_sums.extent(3) - 1;
    const Tensor sums = slice(with_sums, 3, last, last + 1);
    return maximum(sums, Tensor::full(Shape{1, 1, 1, 1}, -1e30, sums.dtype(), sums.device()));
  };
  const Tensor nothing = Tensor::zeros(Shape{heads.k.extent(0), heads.k.extent(1), key_range.keys, 1},
                                       heads.k.dtype(), heads.k.device());
  const Tensor all = log_sum(attention_with_sums(heads.q, heads.k, nothing, plain));
  // relu keeps the share at most 1 when huge scores are rounded.
  const Tensor y = inside * exp(-relu(all - log_sum(band)));
  if (const Tensor kept = input.mask.padding_mask(heads.k, 0)) {
    heads.k = heads.k * kept;
    heads.v = heads.v * kept;
  }
  const Tensor more = elsewhere(heads, all, input, key_range);
  return more ? y + more : y;
}

}  // namespace heed
