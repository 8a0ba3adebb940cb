// Encodes texts that name special tokens.
#include "heed/data/tokenizers/byte_pair.h"

namespace heed {

std::vector<int32_t> encode_with_special(const Tokenizer& tokenizer, std::string_view text) {
  const std::map<int32_t, std::string> special = byte_pair_lists(tokenizer).special;
  std::vector<int32_t> out;
  while (!text.empty()) {
    size_t begin = text.size(), size = 0;
    int32_t found = -1;
    for (const auto& [id, content] : special) {
      const size_t at = text.find(content);
      if (at == std::string_view::npos || at > begin || (at == begin && content.size() <= size)) continue;
      begin = at, size = content.size(), found = id;
    }
    const std::vector<int32_t> before = tokenizer.encode(text.substr(0, begin));
    out.insert(out.end(), before.begin(), before.end());
    if (found >= 0) out.push_back(found);
    text.remove_prefix(begin + size);
  }
  return out;
}

}  // namespace heed
