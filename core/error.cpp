// Numbers and foreign text, for messages.
#include "core/error.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace heed {
namespace {

/// Bytes of the UTF-8 sequence at the start (RFC 3629), 0 where there is none.
size_t sequence(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < bytes) return 0;
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const bool overlong = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xF0 && byte(1) < 0x90);
  const bool surrogate = first == 0xED && byte(1) >= 0xA0;
  const bool beyond = first == 0xF4 && byte(1) >= 0x90;
  return overlong || surrogate || beyond ? 0 : bytes;
}

}  // namespace

std::string shown(std::string_view text, size_t most) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = sequence(text.substr(at));
    if (out.size() + std::max<size_t>(bytes, 1) > most) return out + "...";
    const auto first = static_cast<unsigned char>(text[at]);
    const bool control = first < 0x20 || first == 0x7F ||
                         (bytes == 2 && first == 0xC2 && static_cast<unsigned char>(text[at + 1]) < 0xA0);
    if (bytes == 0 || control) {
      out += '?';
      at += std::max<size_t>(bytes, 1);
    } else {
      out += text.substr(at, bytes);
      at += bytes;
    }
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
