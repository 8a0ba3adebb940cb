// Numbers and text of files in messages.
#include "heed/core/error.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "heed/core/io/terminal.h"
#include "heed/core/io/utf8.h"

namespace heed {

std::string shown(std::string_view text, size_t max_bytes) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = std::max<size_t>(utf8_at(text, at).bytes, 1);
    const std::string letter = terminal_word(text.substr(at, bytes));
    if (out.size() + letter.size() > max_bytes) return out + "...";
    out += letter;
    at += bytes;
  }
  return out;
}

namespace detail {

std::string number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  // A float widened to double would print as 0.10000000149011612: print it as the float it was.
  const auto narrow = static_cast<float>(value);
  const auto end = static_cast<double>(narrow) == value
                       ? std::to_chars(buffer, buffer + sizeof buffer, narrow)
                       : std::to_chars(buffer, buffer + sizeof buffer, value);
  return std::string(buffer, end.ptr);
}

}  // namespace detail
}  // namespace heed
