// Normal forms, small letters and word characters of Unicode as Hugging Face's tokenizers 0.23 have them.
#pragma once

#include <string>
#include <string_view>

namespace heed {

/// A normal form of Unicode (UAX #15).
enum class NormalForm {
  nfc,   ///< composed
  nfd,   ///< decomposed
  nfkc,  ///< composed, and compatible characters are the same: a ligature is its letters
  nfkd,  ///< decomposed likewise
};

/// The text, which is UTF-8, in a normal form. The tables of tokenizers are those of Unicode 11, and those of
/// utf8proc are newer: what came later stays as it is and ends a sequence of marks.
std::string normal_form(std::string_view text, NormalForm form);

/// Appends the small letter or letters of a code point, itself where it has none: by Unicode 17.
void append_lower_case(std::string& out, char32_t code);

/// The class `\w`: letters, marks, decimal digits, connectors and joiners of Unicode 16.
bool is_word_of_tokenizers(char32_t code);

}  // namespace heed
