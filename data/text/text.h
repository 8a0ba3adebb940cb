// UTF-8 text: validation, code points and their classes, lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace heed {

/// What stands for bytes that are no UTF-8.
inline constexpr char32_t replacement_character = 0xFFFD;

/// The code point that begins at the byte `at`, which moves past it. A byte that begins no valid sequence
/// gives `replacement_character` and moves by one, so every input comes to its end.
char32_t next_code_point(std::string_view text, size_t& at);

/// Appends a code point as UTF-8; what is no code point is written as `replacement_character`.
void append_code_point(std::string& out, char32_t code);

/// Offset of the first byte that is no valid UTF-8 (overlong forms, surrogates and values beyond U+10FFFF
/// count as invalid), or `npos`.
size_t invalid_utf8(std::string_view text);

/// The text with `replacement_character` for each byte that is no valid UTF-8.
std::string as_utf8(std::string_view text);

/// Number of code points.
int64_t code_points(std::string_view text);

/// Letters of any script, combining marks, decimal digits, connectors such as `_`, and the joiners: the class
/// `\w` of Unicode regular expressions (UTS #18, annex C).
bool is_word(char32_t code);

/// Letters of any script: the class `\p{L}`.
bool is_letter(char32_t code);

/// Numbers of any script, fractions and Roman numerals among them: the class `\p{N}`.
bool is_number(char32_t code);

/// White space: the class `\s`.
bool is_space(char32_t code);

/// Decimal digits of ASCII.
bool is_digit(char32_t code);

/// The text without white space at either end.
std::string_view trimmed(std::string_view text);

/// Number of runs of characters that are not white space.
int64_t blank_separated_words(std::string_view text);

/// Fault::data when the text holds bytes that are no UTF-8, or a NUL; the error names `name:line:column`.
void check_text(std::string_view text, std::string_view name);

/// The text without a leading byte order mark; its lines end at `\n` or `\r\n`, the last one with or without.
std::vector<std::string_view> split_lines(std::string_view text);

/// Splits at each separator: n separators give n + 1 fields.
std::vector<std::string_view> split_fields(std::string_view line, char separator);

}  // namespace heed
