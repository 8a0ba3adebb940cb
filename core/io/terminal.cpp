// Escapes of terminal controls, and the width of a terminal.
#include "heed/core/io/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <span>

#include "heed/core/io/number_text.h"
#include "heed/core/io/utf8.h"

namespace heed {
namespace {

/// Code points, both ends included.
struct CodeRange {
  char32_t first, last;
};

bool is_in(std::span<const CodeRange> ranges, char32_t code) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [code](const CodeRange& range) { return code >= range.first && code <= range.last; });
}

std::string escaped(std::string_view text, bool one_line) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Utf8 one = utf8_at(text, at);
    const auto byte = static_cast<unsigned char>(text[at]);
    const bool layout = !one_line && (byte == '\n' || byte == '\t');
    if (one.bytes == 0) {
      out += formatted("\\x%02x", byte);
    } else if (is_terminal_control(one.code) && !layout) {
      out += formatted("\\u%04x", static_cast<unsigned>(one.code));
    } else {
      out += text.substr(at, one.bytes);
    }
    at += one.bytes == 0 ? 1 : one.bytes;
  }
  return out;
}

}  // namespace

bool is_terminal_control(char32_t code) {
  static constexpr CodeRange controls[] = {{0, 0x1F},        {0x7F, 0x9F},     {0x61C, 0x61C},
                                           {0x200E, 0x200F}, {0x2028, 0x202E}, {0x2066, 0x2069}};
  return is_in(controls, code);
}

int64_t display_width(char32_t code) {
  // Combining marks (Unicode general categories Mn, Me) and format characters.
  static constexpr CodeRange marks[] = {
      {0x300, 0x36F},   {0x483, 0x489},   {0x591, 0x5BD},   {0x610, 0x61A},   {0x64B, 0x65F},
      {0xE31, 0xE31},   {0xE34, 0xE3A},   {0xE47, 0xE4E},   {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF},
      {0x200B, 0x200D}, {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}, {0xE0100, 0xE01EF}};
  // East Asian wide and fullwidth blocks, and emoji.
  static constexpr CodeRange wide[] = {
      {0x1100, 0x115F},   {0x2E80, 0x303E},   {0x3041, 0x4DBF},  {0x4E00, 0xA4CF}, {0xAC00, 0xD7A3},
      {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},  {0xFFE0, 0xFFE6}, {0x1F300, 0x1F64F},
      {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD}};
  if (is_in(marks, code)) return 0;
  return is_in(wide, code) ? 2 : 1;
}

int64_t display_width(std::string_view utf8) {
  int64_t columns = 0;
  for (size_t at = 0; at < utf8.size();) {
    const Utf8 one = utf8_at(utf8, at);
    columns += display_width(one.code);
    at += std::max<size_t>(one.bytes, 1);
  }
  return columns;
}

std::string terminal_text(std::string_view text) { return escaped(text, false); }
std::string terminal_word(std::string_view text) { return escaped(text, true); }

int64_t terminal_columns(int file, int64_t otherwise) {
  if (const char* asked = std::getenv("COLUMNS")) {
    if (const int64_t columns = parsed_integer(asked).value_or(0); columns > 0) return columns;
  }
  winsize size{};
  if (isatty(file) == 1 && ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return otherwise;
}

int64_t output_columns() { return terminal_columns(STDOUT_FILENO, 80); }

}  // namespace heed
