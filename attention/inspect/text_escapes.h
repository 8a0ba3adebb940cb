// Escaping of text and numbers for terminals, HTML, XML and JSON inside a page.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace heed::picture {

/// A token with only visible characters: broken UTF-8 becomes U+FFFD, control characters become control
/// pictures (so no escape sequence reaches a terminal), blanks become U+2423, an empty token U+2205.
std::string visible(std::string_view token);

/// The columns of a text on a terminal: 0 for combining marks, 2 for wide East Asian characters and emoji.
int64_t display_width(std::string_view utf8);

/// The text cut to at most `columns` columns; ends in an ellipsis when it was cut.
std::string shorten(std::string_view utf8, int64_t columns);

/// Escapes text for HTML and XML content and quoted attributes. Line ends and tabs stay; other control
/// characters are replaced.
std::string escape(std::string_view utf8);

/// A quoted JSON string that is safe inside a script element: every < > & is written as `\u00xx`.
std::string json(std::string_view utf8);
/// A JSON number with six significant digits; null when not finite.
std::string json(double value);

/// Encodes bytes as RFC 4648 base64 with padding.
std::string base64(std::string_view bytes);

/// A number with a fixed count of decimals, independent of the locale: fixed(0.25, 3) is "0.250".
std::string fixed(double value, int decimals);
/// The same without trailing zeros, for coordinates: trimmed(2.50, 2) is "2.5".
std::string trimmed(double value, int decimals);

/// A text as lines of at most `width` columns, broken at blanks; those after the first begin with `indent`.
std::string wrapped(const std::string& words, const std::string& indent, size_t width = 120);

}  // namespace heed::picture
