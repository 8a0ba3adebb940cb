// UTF-8, one sequence at a time.
#pragma once

#include <cstddef>
#include <string_view>

namespace heed {

/// A code point and its length.
struct Utf8 {
  char32_t code = 0xFFFD;  ///< the Unicode code point
  size_t bytes = 0;        ///< 0 where no valid sequence begins: the code is U+FFFD
};

/// The sequence that begins at the byte `at` of the text (RFC 3629: no overlong forms, surrogates or values
/// beyond U+10FFFF).
inline Utf8 utf8_at(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1};
  const size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() - at < bytes) return {};
  char32_t code = first & (0x7Fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  const bool overlong = (bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000);
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  return overlong || surrogate || code > 0x10FFFF ? Utf8{} : Utf8{code, bytes};
}

}  // namespace heed
