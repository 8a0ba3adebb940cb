// What BERT does with a text before it looks for pieces: it normalises the text and cuts it into words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// The steps of normalisation, in their order; those of BertNormalizer in Hugging Face's tokenizers.
struct BertNormalizer {
  bool clean_text = true;        ///< leaves out control characters and U+FFFD; white space becomes a blank
  bool space_ideographs = true;  ///< puts blanks around each CJK ideograph
  bool strip_accents = true;     ///< decomposes characters (NFD) and leaves out nonspacing marks
  bool lower_case = true;        ///< writes every letter in lower case
};

/// The text, normalised; bytes that are not UTF-8 count as U+FFFD.
std::string bert_normalized(std::string_view text, const BertNormalizer& normalizer);

/// The words of a text, as by BertPreTokenizer: they end at white space, and each punctuation character is a
/// word of its own. Punctuation is what ASCII and Unicode call so, and the symbols of ASCII, such as +.
std::vector<std::string_view> bert_words(std::string_view text);

}  // namespace heed
