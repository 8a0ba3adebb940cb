// Escaping of text and numbers for terminals, HTML, XML and JSON inside a page.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heed::picture {

/// A token with only visible characters: broken UTF-8 becomes U+FFFD, control characters become control
/// pictures (so no escape sequence reaches a terminal), blanks become U+2423, an empty token U+2205.
std::string visible(std::string_view token);

/// The text cut to at most `columns` columns; ends in an ellipsis when it was cut.
std::string shorten(std::string_view utf8, int64_t columns);

/// Escapes text for HTML and XML content and quoted attributes. Line ends and tabs stay; other control
/// characters are replaced.
std::string escape(std::string_view utf8);

/// A quoted JSON string that is safe inside a script element: every < > & is written as `\u00xx`.
std::string json(std::string_view utf8);
/// A JSON number with six significant digits; null when not finite.
std::string json(double value);

/// A list of quoted JSON strings, as json() writes them.
std::string json_list(const std::vector<std::string>& words);
/// A list of JSON strings of tokens as visible() shows them.
std::string visible_json_list(const std::vector<std::string>& tokens);

/// Encodes bytes as RFC 4648 base64 with padding.
std::string base64(std::string_view bytes);
/// The numbers as base64 of little-endian f32, bit for bit: what heed.floats of page_grid.js reads.
std::string base64_floats(const std::vector<float>& numbers);
/// Appends the low `count` bytes of a value, the lowest first.
void append_bytes(std::string& bytes, uint32_t value, int count);

/// A number with a fixed count of decimals, independent of the locale: fixed(0.25, 3) is "0.250".
std::string fixed(double value, int decimals);
/// A number like fixed(), but without trailing zeros, for coordinates: trimmed(2.50, 2) is "2.5".
std::string trimmed(double value, int decimals);

/// The largest display width of the words, in columns of a terminal; 0 without words.
int64_t max_display_width(const std::vector<std::string>& words);
/// The side of a field on which words stand that are shorter than it.
enum class Align {
  left,  ///< blanks follow the words
  right  ///< blanks precede the words
};
/// The words with blanks beside them, so that they take at least so many columns of a terminal.
std::string padded(std::string_view words, int64_t columns, Align align = Align::left);
/// A line without blanks at its end, followed by a line break.
std::string trimmed_line(std::string_view line);

/// What `word_of` makes of each item, with `separator` between.
template <class Items, class WordOf>
std::string joined(const Items& items, std::string_view separator, const WordOf& word_of) {
  std::string out;
  bool is_first = true;
  for (const auto& item : items) {
    if (!is_first) out += separator;
    out += word_of(item);
    is_first = false;
  }
  return out;
}
/// The words with `separator` between them.
std::string joined(const std::vector<std::string>& words, std::string_view separator = ", ");
/// Appends `more` to `words`, with `separator` between them unless one of them is empty.
void append_part(std::string& words, std::string_view more, std::string_view separator = "; ");

}  // namespace heed::picture
