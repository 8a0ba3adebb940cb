// Words and numbers made safe for a terminal, for markup and for JSON inside a page.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace heed::picture {

/// A token as something that can be seen: broken UTF-8 becomes U+FFFD, control characters become control
/// pictures (so no escape sequence reaches a terminal), blanks become U+2423, an empty token U+2205.
std::string visible(std::string_view token);

/// Columns that the text takes on a terminal: 0 for combining marks, 2 for wide East Asian characters and
/// emoji.
int64_t display_width(std::string_view utf8);

/// The text cut to at most `columns` columns, its last one an ellipsis where something was cut.
std::string shorten(std::string_view utf8, int64_t columns);

/// Text for HTML and XML content and quoted attributes. Line ends and tabs stay, other control characters do
/// not.
std::string escape(std::string_view utf8);

/// A JSON string with its quotes that may stand inside a script element: every < > & is written as \u00xx.
std::string json(std::string_view utf8);
/// A JSON number with six significant digits; null where it is not finite.
std::string json(double value);

/// RFC 4648 base64 with padding.
std::string base64(std::string_view bytes);

/// A number with a fixed count of decimals, independent of the locale: fixed(0.25, 3) is "0.250".
std::string fixed(double value, int decimals);
/// The same with the zeros at its end left out, for coordinates: trimmed(2.50, 2) is "2.5".
std::string trimmed(double value, int decimals);

}  // namespace heed::picture
