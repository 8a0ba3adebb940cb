// Words between white space, as the translation scores count them.
#pragma once

#include <string_view>
#include <vector>

namespace heed {

/// Whether scores take the code point as white space: that of Unicode, and the separators U+001C to U+001F.
bool is_score_space(char32_t code);

/// The runs of characters that are not white space; they point into `text`.
std::vector<std::string_view> score_words(std::string_view text);

}  // namespace heed
