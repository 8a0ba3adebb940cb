// Splits text at white space.
#include "heed/train/metrics/whitespace.h"

#include "heed/core/error.h"
#include "heed/data/text/text.h"

namespace heed {

bool is_score_space(char32_t code) { return is_space(code) || (code >= 0x1C && code <= 0x1F); }

std::vector<std::string_view> score_words(std::string_view text) {
  std::vector<std::string_view> words;
  size_t word_begin = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t character_begin = at;
    if (!is_score_space(next_code_point(text, at))) continue;
    if (character_begin > word_begin) words.push_back(text.substr(word_begin, character_begin - word_begin));
    word_begin = at;
  }
  if (word_begin < text.size()) words.push_back(text.substr(word_begin));
  return words;
}

void check_references(const char* metric, std::span<const std::string> outputs,
                      std::span<const std::string> references) {
  if (outputs.size() == references.size()) return;
  fail(metric, ": ", outputs.size(), " sentences against ", references.size(),
       " references. One reference for each is needed.");
}

}  // namespace heed
