// What a terminal would obey is written out instead.
#include "heed/core/io/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>

#include "heed/core/io/number_text.h"
#include "heed/core/io/utf8.h"

namespace heed {
namespace {

std::string visible(std::string_view text, bool one_line) {
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
  struct Range {
    char32_t first, last;
  };
  static constexpr Range ranges[] = {{0, 0x1F},        {0x7F, 0x9F},     {0x61C, 0x61C},
                                     {0x200E, 0x200F}, {0x2028, 0x202E}, {0x2066, 0x2069}};
  for (const Range& range : ranges) {
    if (code >= range.first && code <= range.last) return true;
  }
  return false;
}

std::string terminal_text(std::string_view text) { return visible(text, false); }
std::string terminal_word(std::string_view text) { return visible(text, true); }

int64_t terminal_columns(int file, int64_t otherwise) {
  if (const char* asked = std::getenv("COLUMNS")) {
    const std::string_view digits(asked);
    int64_t columns = 0;
    const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), columns);
    if (fault == std::errc() && end == digits.data() + digits.size() && columns > 0) return columns;
  }
  winsize size{};
  if (isatty(file) == 1 && ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return otherwise;
}

}  // namespace heed
