// Escapes of terminal controls, and the width of a terminal.
#include "heed/core/io/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>
#include <utf8proc.h>

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

/// terminal_text(), or terminal_word() where `is_one_line`.
std::string escaped(std::string_view text, bool is_one_line) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Utf8 sequence = utf8_at(text, at);
    const auto byte = static_cast<unsigned char>(text[at]);
    const bool is_layout = !is_one_line && (byte == '\n' || byte == '\t');
    if (sequence.bytes == 0) {
      out += formatted("\\x%02x", byte);
    } else if (is_terminal_control(sequence.code) && !is_layout) {
      out += formatted("\\u%04x", static_cast<unsigned>(sequence.code));
    } else {
      out += text.substr(at, sequence.bytes);
    }
    at += sequence.bytes == 0 ? 1 : sequence.bytes;
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
  const auto point = static_cast<utf8proc_int32_t>(code);
  // utf8proc counts no column for characters that Unicode has not assigned; terminals show a box.
  if (utf8proc_category(point) == UTF8PROC_CATEGORY_CN) return 1;
  return utf8proc_charwidth(point);
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

std::string terminal_text(std::string_view text) { return escaped(text, /*is_one_line=*/false); }
std::string terminal_word(std::string_view text) { return escaped(text, /*is_one_line=*/true); }

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
