// Hides tokens of texts as BERT does.
#include "heed/train/tasks/language/masked_tokens.h"

#include <algorithm>

#include "heed/data/batching/shuffle.h"

namespace heed {
namespace {

constexpr uint64_t replacing_stream = 0x7265706C, random_token_stream = 0x72616E64;
constexpr int64_t tenths_hidden = 8, tenths_changed = 9;  // from the first on a random token, then unchanged

}  // namespace

int32_t mask_of(const Tokenizer& tokenizer) {
  const int32_t mask = tokenizer.special().mask;
  return mask >= 0 ? mask : static_cast<int32_t>(tokenizer.size());
}

int64_t masked_vocabulary(const Tokenizer& tokenizer) {
  return tokenizer.size() + (tokenizer.special().mask >= 0 ? 0 : 1);
}

std::vector<int32_t> between_ends(const Tokenizer& tokenizer, const std::vector<int32_t>& ids,
                                  int64_t max_length) {
  const int64_t around = tokenizer.special().around_masked(),
                count = std::clamp<int64_t>(max_length - around, 0, static_cast<int64_t>(ids.size()));
  std::vector<int32_t> out(ids.begin(), ids.begin() + count);
  if (around == 0) return out;
  out.insert(out.begin(), tokenizer.start());
  out.push_back(tokenizer.end());
  return out;
}

MaskedRows masked_rows(const Tokenizer& tokenizer, const Rows& windows, std::vector<int64_t> names,
                       const Hiding& hiding) {
  std::vector<int32_t> ids = windows.ids;
  TokenRows inputs{.ids = ids,
                   .columns = windows.columns,
                   .lengths = std::vector<int64_t>(static_cast<size_t>(windows.rows), windows.columns),
                   .names = std::move(names)};
  Hiding with_mask = hiding;
  with_mask.hidden = mask_of(tokenizer);
  MaskedRows out{.ids = {},
                 .columns = windows.columns + tokenizer.special().around_masked(),
                 .asked = hide_tokens(inputs, with_mask)};
  const uint64_t replacing = counter_bits(hiding.seed, replacing_stream, hiding.drawn),
                 random = counter_bits(hiding.seed, random_token_stream, hiding.drawn);
  const int64_t before = (out.columns - windows.columns) / 2;
  for (size_t i = 0; i < out.asked.rows.size(); ++i) {
    int32_t& place = out.asked.rows[i];
    const int64_t row = place / windows.columns, column = place % windows.columns;
    const auto name = static_cast<uint64_t>(inputs.names[static_cast<size_t>(row)]),
               counter = static_cast<uint64_t>(column);
    const int64_t drawn = counter_below(replacing, name, counter, 10);
    int32_t& id = ids[static_cast<size_t>(place)];
    if (drawn >= tenths_changed)
      id = out.asked.tokens[i];
    else if (drawn >= tenths_hidden)
      id = static_cast<int32_t>(counter_below(random, name, counter, tokenizer.size()));
    place = static_cast<int32_t>(row * out.columns + column + before);
  }
  for (int64_t row = 0; row < windows.rows; ++row) {
    const auto begin = ids.begin() + row * windows.columns;
    const std::vector<int32_t> whole =
        between_ends(tokenizer, std::vector<int32_t>(begin, begin + windows.columns), out.columns);
    out.ids.insert(out.ids.end(), whole.begin(), whole.end());
  }
  return out;
}

}  // namespace heed
