// Splits text at white space for the translation metrics.
#pragma once

#include <string_view>
#include <vector>

namespace heed {

/// True for Unicode white space and the separators U+001C to U+001F.
bool is_score_space(char32_t code);

/// The words of `text`: runs of characters other than white space. They point into `text`.
std::vector<std::string_view> score_words(std::string_view text);

}  // namespace heed
