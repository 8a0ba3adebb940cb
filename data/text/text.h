// UTF-8 text: validation, code points and their classes, lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "heed/core/error.h"

namespace heed {

/// Replaces bytes that are not UTF-8.
inline constexpr char32_t replacement_character = 0xFFFD;

/// The code point at byte `at`; moves `at` behind it. A byte that begins no valid sequence gives
/// `replacement_character` and moves `at` by one, so every loop ends.
char32_t next_code_point(std::string_view text, size_t& at);

/// Appends a code point as UTF-8; an invalid one as `replacement_character`.
void append_code_point(std::string& out, char32_t code);

/// Offset of the first byte that is not valid UTF-8 (overlong forms, surrogates and values above U+10FFFF are
/// invalid), or `npos`.
size_t invalid_utf8(std::string_view text);

/// The text with `replacement_character` for each byte that is not valid UTF-8.
std::string as_utf8(std::string_view text);

/// What counts as one character: a Unicode code point, or a byte.
enum class CharacterUnit { code_point, byte };

/// Number of code points.
int64_t code_points(std::string_view text);

/// Letters of any script, combining marks, decimal digits, connectors such as `_`, and joiners: `\w` of
/// Unicode regular expressions (UTS #18, annex C).
bool is_word(char32_t code);

/// Letters of any script: the class `\p{L}`.
bool is_letter(char32_t code);

/// Numbers of any script, including fractions and Roman numerals: the class `\p{N}`.
bool is_number(char32_t code);

/// White space: the class `\s`.
bool is_space(char32_t code);

/// ASCII digits.
bool is_digit(char32_t code);

/// The text without white space at either end.
std::string_view trimmed(std::string_view text);

/// Number of words: runs of characters other than white space.
int64_t blank_separated_words(std::string_view text);

/// Runs of characters for which is_word_character(code) is true, and runs of others but white space.
std::vector<std::string_view> word_runs(std::string_view text, bool (*is_word_character)(char32_t));

/// Fault::data when the text has bytes that are not UTF-8, or a NUL; the error names `name:line:column`.
void check_text(std::string_view text, std::string_view name);

/// The lines of a text without its byte order mark; they end at `\n` or `\r\n`, the last one with or without.
std::vector<std::string_view> split_lines(std::string_view text);

/// Splits at each separator: n separators give n + 1 fields.
std::vector<std::string_view> split_fields(std::string_view line, char separator);

}  // namespace heed
