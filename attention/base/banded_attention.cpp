// Banded softmax, banded products and sparse matrix positions.
#include "heed/attention/base/banded_attention.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "heed/core/constant_table.h"

namespace heed {
namespace {

/// u8 [Tq, Tk]: `value` (0 or 1) where |i - j| <= width, 1 - value elsewhere. Row 0 is position `first`.
Tensor band_table(const Tensor& scores, int64_t first, int64_t width, uint8_t value) {
  const int64_t queries = scores.extent(2), keys = scores.extent(3);
  std::vector<uint8_t> table(static_cast<size_t>(queries * keys), static_cast<uint8_t>(1 - value));
  for (int64_t row = 0; row < queries; ++row) {
    const int64_t i = first + row;
    const int64_t begin = std::clamp<int64_t>(i - width, 0, keys),
                  end = std::clamp<int64_t>(i + width + 1, begin, keys);
    std::fill(table.begin() + row * keys + begin, table.begin() + row * keys + end, value);
  }
  return constant_table<uint8_t>(table, Shape{queries, keys}, scores.device());
}

}  // namespace

Tensor band_mask(const Tensor& scores, int64_t first, int64_t width) {
  return band_table(scores, first, width, 1);
}

Tensor outside_band_mask(const Tensor& scores, int64_t first, int64_t width) {
  return band_table(scores, first, width, 0);
}

Tensor random_positions(const char* name, int64_t max_length, double density, Rng& rng) {
  if (!(density >= 0 && density <= 1))
    fail("attention '", name, "': density = ", density, ". It is a share of pairs, from 0 to 1.");
  if (max_length < 1) {
    fail("attention '", name,
         "': positions of errors are drawn for the longest input, which is not known here. Set max_length.");
  }
  constexpr int64_t max_tokens = 46340;  // the square root of 2^31: positions are i32
  if (max_length > max_tokens) {
    fail("attention '", name, "': max_length = ", max_length,
         ", but errors are placed among the pairs of at most ", max_tokens, " tokens. Lower max_length.");
  }
  const int64_t num_pairs = max_length * max_length, num_off_diagonal = num_pairs - max_length;
  const double wanted =
      density > 0 ? density * static_cast<double>(num_pairs) : static_cast<double>(max_length);
  const int64_t count = std::min<int64_t>(std::max<int64_t>(1, std::llround(wanted)), num_off_diagonal);
  if (count == 0) return {};
  // Floyd's sampling: every set of `count` off-diagonal positions is equally likely.
  std::set<int64_t> drawn;
  for (int64_t n = num_off_diagonal - count; n < num_off_diagonal; ++n) {
    const int64_t pick = rng.below(n + 1);
    drawn.insert(drawn.contains(pick) ? n : pick);
  }
  std::vector<int32_t> positions;
  for (const int64_t n : drawn)  // off-diagonal position n, counted with the diagonal
    positions.push_back(static_cast<int32_t>(n + n / max_length + 1));
  return Tensor::of<int32_t>(positions, Shape{1, 1, static_cast<int64_t>(positions.size())});
}

void check_max_length(const char* name, int64_t length, int64_t max_length) {
  if (length > max_length) {
    fail("attention '", name, "': ", length, " tokens, but its matrix was made for ", max_length,
         ". Raise max_length.");
  }
}

VisiblePositions visible_positions(const std::vector<int64_t>& positions, int64_t max_length,
                                   const KeyRange& key_range, int64_t width, BandSide side) {
  VisiblePositions visible;
  for (size_t n = 0; n < positions.size(); ++n) {
    const int64_t i = positions[n] / max_length, j = positions[n] % max_length;
    const int64_t row = i - key_range.first_query, column = j - key_range.first_key;
    if (row < 0 || row >= key_range.queries || column < 0 || column >= key_range.keys) continue;
    if ((key_range.causal && j > i) || (std::abs(i - j) <= width) != (side == BandSide::inside)) continue;
    visible.indices.push_back(static_cast<int32_t>(n));
    visible.queries.push_back(static_cast<int32_t>(row));
    visible.keys.push_back(static_cast<int32_t>(column));
  }
  return visible;
}

Tensor row_indices(const std::vector<int32_t>& ids, Device device) {
  return constant_table<int32_t>(ids, Shape{1, 1, static_cast<int64_t>(ids.size())}, device);
}

Tensor band_product(const Tensor& band, const Tensor& v, const KeyRange& key_range, double dropout_rate,
                    Rng* rng) {
  const int64_t width = (band.extent(3) - 1) / 2, queries = band.extent(2), heads = band.extent(1),
                batch = v.extent(0), dv = v.extent(3), band_batch = band.extent(0);
  // Queries are cut into blocks of `rows`; those of a block attend to `columns` neighbouring keys.
  const int64_t rows = std::max<int64_t>(width, 1), columns = rows + 2 * width,
                blocks = (queries + rows - 1) / rows;
  std::vector<int32_t> key_rows;  // rows of each block's keys; -1, a row of zeros, for missing ones
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t first_row = key_range.first_query + block * rows - width - key_range.first_key;
    for (int64_t row = first_row; row < first_row + columns; ++row)
      key_rows.push_back(static_cast<int32_t>(row >= 0 && row < key_range.keys ? row : -1));
  }
  const Tensor values =
      reshape(gather_rows(v, row_indices(key_rows, v.device())), Shape{batch, heads, blocks, columns, dv});
  Tensor entries = band;
  if (const int64_t missing = blocks * rows - queries; missing > 0) {
    Shape shape = band.shape();
    shape[2] = missing;
    entries = concat(std::vector<Tensor>{entries, Tensor::zeros(shape, band.dtype(), band.device())}, 2);
  }
  // Row r of a block starts at column r: pad each row to columns + 1 numbers, then read rows of `columns`.
  const Shape padding{band_batch, heads, blocks, rows, rows};
  const Tensor padded =
      concat(std::vector<Tensor>{reshape(entries, Shape{band_batch, heads, blocks, rows, 2 * width + 1}),
                                 Tensor::zeros(padding, band.dtype(), band.device())},
             4);
  Tensor flat =
      slice(reshape(padded, Shape{band_batch, heads, blocks, rows * (columns + 1)}), 3, 0, rows * columns);
  // Dropout acts after the padding: a band for each sequence would have to be copied once more to be padded.
  if (rng != nullptr && dropout_rate > 0)
    flat = dropout(expand(flat, Shape{batch, heads, blocks, rows * columns}), dropout_rate, rng);
  const Tensor products = matmul(reshape(flat, Shape{flat.extent(0), heads, blocks, rows, columns}), values);
  return slice(reshape(products, Shape{batch, heads, blocks * rows, dv}), 2, 0, queries);
}

void BandedAttention::keys(int64_t, int64_t i, int64_t, KeySet& out) const {
  out.add_range(i - width_, i + width_ + 1);
}

Tensor BandedAttention::outside_term(const Heads&, const Tensor&, const AttentionInput&,
                                     const KeyRange&) const {
  return {};
}

Tensor BandedAttention::attend(Heads heads, const AttentionInput& input) {
  const int64_t first_query = read_cache(heads, input);
  if (input.context.recorder != nullptr)
    input.context.recorder->factors(*this, heads.q, heads.k, scale(heads.q));
  if (modifiers().acts_on_scores() || input.mask.bias()) return attend_by_map(heads, input, first_query);
  record_map(input, [&] { return weights(heads, input, first_query); });
  const Tensor band =
      pattern_attention_with_sums(heads.q, heads.k, heads.v, pattern_params(heads, input, first_query));
  const Tensor inside = slice(band, 3, 0, heads.v.extent(3));
  if (is_renormalised()) return inside;
  const KeyRange key_range{.first_query = first_query,
                           .queries = heads.q.extent(2),
                           .first_key = 0,
                           .keys = heads.k.extent(2),
                           .causal = input.mask.is_causal()};
  // The log-sum-exp of each row, the last column; -1e30 instead of -inf, so that rows without keys give no
  // NaN.
  const auto log_sum_exp = [](const Tensor& with_sums) {
    const int64_t width = with_sums.extent(3);
    return maximum(slice(with_sums, 3, width - 1, width), -1e30);
  };
  const Tensor no_values = Tensor::zeros(Shape{heads.k.extent(0), heads.k.extent(1), key_range.keys, 1},
                                         heads.k.dtype(), heads.k.device());
  const Tensor lse_all = log_sum_exp(attention_with_sums(heads.q, heads.k, no_values,
                                                         {.scale = scale(heads.q),
                                                          .causal = key_range.causal,
                                                          .first_query = first_query,
                                                          .key_lengths = input.mask.key_lengths()}));
  // relu keeps the share at most 1 when huge scores are rounded.
  const Tensor y = inside * exp(-relu(lse_all - log_sum_exp(band)));
  if (const Tensor kept = input.mask.padding_mask(heads.k, 0)) {
    heads.k = heads.k * kept;
    heads.v = heads.v * kept;
  }
  const Tensor outside = outside_term(heads, lse_all, input, key_range);
  return outside ? y + outside : y;
}

}  // namespace heed
