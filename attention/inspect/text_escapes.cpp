// A UTF-8 decoder, and the escaping functions.
#include "heed/attention/inspect/text_escapes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>

#include "heed/core/io/terminal.h"
#include "heed/core/io/utf8.h"

namespace heed::picture {
namespace {

constexpr char32_t replacement = 0xFFFD;

/// True for invisible characters beyond ASCII that reorder or break a line, and for byte-order marks.
bool is_invisible(char32_t c) {
  return c >= 0x80 && (is_terminal_control(c) || c == 0xFEFF || c == 0xFFFE || c == 0xFFFF);
}

/// Reads one character and removes it from `rest`. An invalid sequence is read as U+FFFD: its first byte with
/// the continuation bytes that belong to it.
char32_t take_character(std::string_view& rest) {
  const Utf8 character = utf8_at(rest, 0);
  size_t num_bytes = character.bytes;
  if (num_bytes == 0) {  // invalid
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(rest[i]); };
    const unsigned char lead = byte(0);
    const size_t length = lead < 0xC2 || lead > 0xF4 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    for (num_bytes = 1; num_bytes < length && num_bytes < rest.size() && (byte(num_bytes) & 0xC0) == 0x80;)
      ++num_bytes;
  }
  rest.remove_prefix(num_bytes);
  return character.code;
}

/// Appends a character as UTF-8.
void append_character(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
    return;
  }
  const int num_continuations = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  constexpr unsigned char lead[] = {0, 0xC0, 0xE0, 0xF0};
  out += static_cast<char>(lead[num_continuations] | (c >> (6 * num_continuations)));
  for (int i = num_continuations - 1; i >= 0; --i) out += static_cast<char>(0x80 | (c >> (6 * i) & 0x3F));
}

/// A number in this format with so many digits: significant ones, or decimals if it is fixed.
std::string to_text(double value, std::chars_format format, int digits) {
  std::array<char, 400> buffer;
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format, digits);
  return {buffer.data(), result.ptr};
}

}  // namespace

std::string visible(std::string_view token) {
  if (token.empty()) return "∅";
  std::string out;
  while (!token.empty()) {
    const char32_t c = take_character(token);
    if (c < 0x20)
      append_character(out, U'\u2400' + c);  // the control picture of c
    else if (c == 0x20 || c == 0xA0)
      append_character(out, U'\u2423');  // an open box, for blanks
    else if (c == 0x7F)
      append_character(out, U'\u2421');  // the control picture of DEL
    else
      append_character(out, is_invisible(c) ? replacement : c);
  }
  return out;
}

std::string shorten(std::string_view utf8, int64_t columns) {
  if (display_width(utf8) <= columns) return std::string(utf8);
  if (columns < 1) return "";
  std::string out;
  int64_t used = 0;
  while (!utf8.empty()) {
    const char32_t c = take_character(utf8);
    if (used + display_width(c) > columns - 1) break;
    used += display_width(c);
    append_character(out, c);
  }
  return out + "…";
}

std::string escape(std::string_view utf8) {
  std::string out;
  out.reserve(utf8.size());
  while (!utf8.empty()) {
    const char32_t c = take_character(utf8);
    const std::string_view entity = c == '&'    ? "&amp;"
                                    : c == '<'  ? "&lt;"
                                    : c == '>'  ? "&gt;"
                                    : c == '"'  ? "&quot;"
                                    : c == '\'' ? "&#39;"
                                                : "";
    const bool is_layout = c == '\n' || c == '\t' || c == '\r';
    if (!entity.empty())
      out += entity;
    else
      append_character(out, (c < 0x20 && !is_layout) || c == 0x7F || is_invisible(c) ? replacement : c);
  }
  return out;
}

std::string json(std::string_view utf8) {
  constexpr char digits[] = "0123456789abcdef";
  std::string out = "\"";
  while (!utf8.empty()) {
    const char32_t c = take_character(utf8);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c < 0x20 || c == 0x7F || c == '<' || c == '>' || c == '&') {
      out += "\\u00";
      out += digits[c >> 4];
      out += digits[c & 15];
    } else {
      append_character(out, is_invisible(c) ? replacement : c);
    }
  }
  return out + '"';
}

std::string json(double value) {
  return std::isfinite(value) ? to_text(value, std::chars_format::general, 6) : "null";
}

std::string json_list(const std::vector<std::string>& words) {
  return "[" + joined(words, ",", [](const std::string& word) { return json(word); }) + "]";
}

std::string visible_json_list(const std::vector<std::string>& tokens) {
  return "[" + joined(tokens, ",", [](const std::string& token) { return json(visible(token)); }) + "]";
}

std::string base64(std::string_view bytes) {
  constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t j = 0; j < 3; ++j)
      group = group << 8 | (j < count ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    for (size_t j = 0; j < 4; ++j) out += j <= count ? digits[group >> (18 - 6 * j) & 63] : '=';
  }
  return out;
}

void append_bytes(std::string& bytes, uint32_t value, int count) {
  for (int i = 0; i < count; ++i) bytes += static_cast<char>(value >> (8 * i) & 255);
}

std::string base64_floats(const std::vector<float>& numbers) {
  std::string bytes;
  bytes.reserve(numbers.size() * sizeof(float));
  for (const float number : numbers) append_bytes(bytes, std::bit_cast<uint32_t>(number), 4);
  return base64(bytes);
}

std::string fixed(double value, int decimals) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::string out = to_text(value, std::chars_format::fixed, decimals);
  const bool is_zero = out.find_first_of("123456789") == std::string::npos;
  return is_zero && out.front() == '-' ? out.substr(1) : out;
}

std::string trimmed(double value, int decimals) {
  std::string out = fixed(value, decimals);
  if (out.find('.') == std::string::npos) return out;
  out.erase(out.find_last_not_of('0') + 1);
  if (out.back() == '.') out.pop_back();
  return out;
}

int64_t max_display_width(const std::vector<std::string>& words) {
  int64_t columns = 0;
  for (const std::string& word : words) columns = std::max(columns, display_width(word));
  return columns;
}

std::string padded(std::string_view words, int64_t columns, Align align) {
  const std::string blanks(static_cast<size_t>(std::max<int64_t>(columns - display_width(words), 0)), ' ');
  return align == Align::left ? std::string(words) + blanks : blanks + std::string(words);
}

std::string trimmed_line(std::string_view line) {
  return std::string(line.substr(0, line.find_last_not_of(' ') + 1)) + "\n";
}

std::string joined(const std::vector<std::string>& words, std::string_view separator) {
  return joined(words, separator, [](const std::string& word) -> const std::string& { return word; });
}

void append_part(std::string& words, std::string_view more, std::string_view separator) {
  if (!words.empty() && !more.empty()) words += separator;
  words += more;
}

}  // namespace heed::picture
