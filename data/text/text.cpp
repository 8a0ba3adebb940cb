// UTF-8 text: validation, code points and their classes, lines.
#include "heed/data/text/text.h"

#include <utf8proc.h>

#include <algorithm>

#include "heed/core/io/hash.h"
#include "heed/core/io/utf8.h"

namespace heed {
namespace {

/// The general category of the Unicode Character Database.
utf8proc_category_t category_of(char32_t code) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code));
}

bool is_ascii_letter(char32_t code) { return (code | 0x20) >= 'a' && (code | 0x20) <= 'z'; }

}  // namespace

char32_t next_code_point(std::string_view text, size_t& at) {
  const Utf8 decoded = utf8_at(text, at);
  at += decoded.bytes == 0 ? 1 : decoded.bytes;
  return decoded.code;
}

void append_code_point(std::string& out, char32_t code) {
  if (!utf8proc_codepoint_valid(static_cast<utf8proc_int32_t>(code))) code = replacement_character;
  utf8proc_uint8_t bytes[4];
  const auto count = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), bytes);
  out.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(count));
}

size_t invalid_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = utf8_at(text, at).bytes;
    if (bytes == 0) return at;
    at += bytes;
  }
  return std::string_view::npos;
}

std::string as_utf8(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) append_code_point(out, next_code_point(text, at));
  return out;
}

int64_t code_points(std::string_view text) {
  int64_t count = 0;
  for (size_t at = 0; at < text.size(); ++count) next_code_point(text, at);
  return count;
}

bool is_digit(char32_t code) { return code >= '0' && code <= '9'; }

bool is_letter(char32_t code) {
  if (code < 0x80) return is_ascii_letter(code);
  const utf8proc_category_t category = category_of(code);
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool is_number(char32_t code) {
  if (code < 0x80) return is_digit(code);
  const utf8proc_category_t category = category_of(code);
  return category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO;
}

bool is_word(char32_t code) {
  if (code < 0x80) return is_ascii_letter(code) || is_digit(code) || code == '_';
  const bool joiner = code == 0x200C || code == 0x200D;
  // Circled and squared letters are symbols by their category, but \w contains them.
  const bool circled = (code >= 0x24B6 && code <= 0x24E9) || (code >= 0x1F130 && code <= 0x1F149) ||
                       (code >= 0x1F150 && code <= 0x1F169) || (code >= 0x1F170 && code <= 0x1F189);
  switch (category_of(code)) {
    case UTF8PROC_CATEGORY_MN:  // combining marks
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:  // decimal digits
    case UTF8PROC_CATEGORY_NL:  // numerals that are letters
    case UTF8PROC_CATEGORY_PC:  // connectors
      return true;
    default:
      return is_letter(code) || joiner || circled;
  }
}

bool is_space(char32_t code) {
  if (code < 0x80) return code == ' ' || (code >= '\t' && code <= '\r');
  return code == 0x85 || code == 0xA0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200A) ||
         code == 0x2028 || code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

std::string_view trimmed(std::string_view text) {
  size_t first = text.size();
  size_t end = 0;  // end of the last character other than white space
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    if (is_space(next_code_point(text, at))) continue;
    if (first == text.size()) first = begin;
    end = at;
  }
  return first < end ? text.substr(first, end - first) : std::string_view{};
}

int64_t blank_separated_words(std::string_view text) {
  int64_t count = 0;
  bool in_word = false;
  for (size_t at = 0; at < text.size();) {
    const bool was_in_word = in_word;
    in_word = !is_space(next_code_point(text, at));
    if (in_word && !was_in_word) ++count;
  }
  return count;
}

std::vector<std::string_view> word_runs(std::string_view text, bool (*is_word_character)(char32_t)) {
  enum class Kind { none, word, other };
  std::vector<std::string_view> runs;
  Kind run = Kind::none;  // kind of the characters from run_begin on
  size_t run_begin = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const char32_t code = next_code_point(text, at);
    const Kind kind = is_word_character(code) ? Kind::word : is_space(code) ? Kind::none : Kind::other;
    if (kind == run) continue;
    if (run != Kind::none) runs.push_back(text.substr(run_begin, begin - run_begin));
    run = kind;
    run_begin = begin;
  }
  if (run != Kind::none) runs.push_back(text.substr(run_begin));
  return runs;
}

void check_text(std::string_view text, std::string_view name) {
  size_t bad = invalid_utf8(text);
  const size_t nul = text.substr(0, bad).find('\0');
  const bool is_nul = nul != std::string_view::npos;
  if (is_nul) bad = nul;
  if (bad == std::string_view::npos) return;
  const std::string_view before = text.substr(0, bad);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t line_begin = before.rfind('\n') + 1;  // 0 where there is no line end: npos + 1
  const std::string place = heed::text(name, ":", line, ":", code_points(before.substr(line_begin)) + 1);
  if (is_nul) fail(Fault::data, place, ": a NUL byte, so this is not a text file. Use UTF-8 text.");
  fail(Fault::data, place, ": byte 0x", hexadecimal(text.substr(bad, 1)), " (", bad + 1,
       " of the file) is not UTF-8. Convert the file: iconv -f latin1 -t utf-8, where it is Latin-1.");
}

std::vector<std::string_view> split_lines(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

std::vector<std::string_view> split_fields(std::string_view line, char separator) {
  std::vector<std::string_view> fields;
  for (;;) {
    const size_t end = line.find(separator);
    fields.push_back(line.substr(0, end));
    if (end == std::string_view::npos) return fields;
    line.remove_prefix(end + 1);
  }
}

}  // namespace heed
