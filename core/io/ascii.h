// Letters, digits and blanks of ASCII, independent of the locale, which the functions of the C library are
// not.
#pragma once

#include <string_view>

namespace heed {

/// 0 to 9.
constexpr bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }
/// a to z, A to Z, 0 to 9.
constexpr bool is_ascii_alphanumeric(char c) {
  return is_ascii_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
/// The small letter of A to Z; every other byte as it is.
constexpr char ascii_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
/// The capital letter of a to z; every other byte as it is.
constexpr char ascii_upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }
/// The text without blanks and tabs at both ends.
constexpr std::string_view without_blanks(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t"), end = text.find_last_not_of(" \t");
  return begin == text.npos ? std::string_view() : text.substr(begin, end - begin + 1);
}

}  // namespace heed
