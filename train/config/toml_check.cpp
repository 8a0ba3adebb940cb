// Refuses TOML that would crash the parser.
#include "heed/train/config/toml_check.h"

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "heed/core/io/ascii.h"
#include "heed/data/text/text.h"

namespace heed {
namespace {

/// The end of the text or comment that the quote or # at index `begin` opens: after the closing quote, or at
/// the end of a line without one.
size_t end_of_quote(std::string_view all, size_t begin) {
  const char quote = all[begin];
  if (quote == '#') return std::min(all.find('\n', begin), all.size());
  const bool is_triple = begin + 2 < all.size() && all[begin + 1] == quote && all[begin + 2] == quote;
  const std::string_view closing = all.substr(begin, is_triple ? 3 : 1);
  for (size_t i = begin + closing.size(); i < all.size(); ++i) {
    if (!is_triple && all[i] == '\n') return i;
    if (all.substr(i, closing.size()) == closing) {
      i += closing.size();
      // Up to two quotes before the closing three belong to the text.
      for (int extra = 0; is_triple && extra < 2 && i < all.size() && all[i] == quote; ++extra) ++i;
      return i;
    }
    if (quote == '"' && all[i] == '\\') ++i;  // an escaped letter
  }
  return all.size();
}

/// True if the `[` at index `bracket` is followed by a character that may begin a name, or by the end of the
/// text.
bool names_a_table(std::string_view all, size_t bracket) {
  const size_t next = std::min(all.find_first_not_of(" \t", bracket + 1), all.size());
  return next == all.size() || is_ascii_alphanumeric(all[next]) ||
         std::string_view("_-\"']").find(all[next]) != std::string_view::npos;
}

/// True if only blanks are between a line that ends with a backslash and the letter at index `letter`.
bool continues_line(std::string_view all, size_t letter) {
  const size_t last = letter == 0 ? all.npos : all.find_last_not_of(" \t\r\n", letter - 1);
  return last != all.npos && all[last] == '\\' && all.substr(last, letter - last).find('\n') != all.npos;
}

/// Whether the `[` at `at` is the second one of a line [[name]] and nothing else but a comment, where the
/// name has at most 64 letters, digits, underscores and dots. The parser reads longer names only in part.
bool is_second_of_list_table(std::string_view all, size_t line_begin, size_t at) {
  constexpr size_t max_name = 64;
  if (at == 0 || all[at - 1] != '[') return false;
  if (all.substr(line_begin, at - 1 - line_begin).find_first_not_of(" \t\r") != all.npos) return false;
  const std::string_view rest = all.substr(at + 1, all.find('\n', at) - at - 1);
  const auto is_of_name = [](char letter) {
    return is_ascii_alphanumeric(letter) || letter == '_' || letter == '.';
  };
  const auto end = static_cast<size_t>(std::find_if_not(rest.begin(), rest.end(), is_of_name) - rest.begin());
  if (end == 0 || end > max_name || rest.substr(end, 2) != "]]") return false;
  const size_t next = rest.find_first_not_of(" \t\r", end + 2);
  return next == rest.npos || rest[next] == '#';
}

bool is_blank(char letter) { return letter == ' ' || letter == '\t' || letter == '\r'; }

/// The part of a line: blanks before the name, the name, blanks behind the equals sign, the value, the end.
enum class Part { start, name, equals, value, end };

/// The part of a line that a letter outside of quotes belongs to, given the part of the letter before it.
Part part_at(char letter, Part before) {
  if (letter == '\n') return Part::start;
  if (before == Part::start && is_blank(letter)) return Part::start;
  if (before <= Part::name) return letter == '=' ? Part::equals : Part::name;
  if (before == Part::equals) return is_blank(letter) ? Part::equals : Part::value;
  return is_blank(letter) ? Part::end : before;
}

/// Maximum number of dots in a name. The parser recurses once for each and would overflow the stack; the name
/// of a setting has one dot.
constexpr int max_dots = 16;

}  // namespace

void check_toml(const std::string& all, const std::string& name) {
  check_text(all, name);
  int64_t line = 1;
  size_t begin = 0, quote_end = 0;  // begin of this line, and end of the last quote
  Part part = Part::start;
  int dots = 0;  // in the name of this line
  for (size_t at = 0; at < all.size(); ++at) {
    const auto letter = static_cast<unsigned char>(all[at]);
    const bool is_byte_order_mark = at < 3 && all.starts_with("\xEF\xBB\xBF");
    const auto refuse = [&](const auto&... words) {
      fail(name, ":", line, ":", at - begin + 1, ": ", words...);
    };
    const bool bare = at >= quote_end;
    if (bare && (letter == '"' || letter == '\'' || letter == '#')) quote_end = end_of_quote(all, at);
    if (letter == '\n') {
      ++line;
      begin = at + 1;
      dots = 0;
    } else if ((letter < 0x20 && letter != '\t' && letter != '\r') || letter == 0x7F) {
      refuse("a control character (", static_cast<int>(letter), "). Take it out.");
    } else if (letter >= 0x80 && bare && !is_byte_order_mark) {
      refuse("a letter beyond ASCII outside of quotes. Put the name or value that it is part of in quotes.");
    } else if (letter >= 0x80 && !is_byte_order_mark && continues_line(all, at)) {
      refuse(
          "a letter beyond ASCII right behind a line that a backslash breaks. Write that text in one line.");
    } else if (bare && (letter == '{' || letter == '}' || letter == ',' ||
                        (letter == '[' && part != Part::start && !is_second_of_list_table(all, begin, at)))) {
      refuse("'", all[at], "' outside of quotes. A value is a number, a text in quotes, or true or false.");
    } else if (letter == '[' && bare && !names_a_table(all, at) &&
               !is_second_of_list_table(all, begin, at + 1)) {
      refuse("'[' is followed by no name. Write a group as [train].");
    } else if (bare && part == Part::end && letter != '#' && !is_blank(all[at])) {
      refuse("a second value in this line. Give one; text goes in quotes.");
    } else if (letter == '.' && bare && part <= Part::name && ++dots > max_dots) {
      refuse("a name with more than ", max_dots, " dots. A setting has one, as in train.learning_rate.");
    }
    if (bare && !is_byte_order_mark) part = part_at(all[at], part);
  }
}

}  // namespace heed
