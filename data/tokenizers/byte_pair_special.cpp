// Encodes texts that name special tokens.
#include "heed/data/tokenizers/byte_pair.h"
#include "heed/data/tokenizers/special_finder.h"

namespace heed {

std::vector<int32_t> encode_with_special(const Tokenizer& tokenizer, std::string_view text) {
  detail::SpecialFinder finder;
  for (const auto& [id, content] : byte_pair_lists(tokenizer).special) finder.add(id, content);
  std::vector<int32_t> out;
  finder.cut(
      text,
      [&](std::string_view part, size_t) {
        const std::vector<int32_t> ids = tokenizer.encode(part);
        out.insert(out.end(), ids.begin(), ids.end());
      },
      [&](int32_t id) { out.push_back(id); });
  return out;
}

}  // namespace heed
