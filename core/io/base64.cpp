// Bytes from base64: four letters hold three bytes.
#include "heed/core/io/base64.h"

#include <cstdint>

namespace heed {
namespace {

/// The six bits of a letter; -1 for others.
int bits_of(char letter) {
  if (letter >= 'A' && letter <= 'Z') return letter - 'A';
  if (letter >= 'a' && letter <= 'z') return letter - 'a' + 26;
  if (letter >= '0' && letter <= '9') return letter - '0' + 52;
  return letter == '+' ? 62 : letter == '/' ? 63 : -1;
}

}  // namespace

std::optional<std::string> from_base64(std::string_view letters) {
  if (letters.size() % 4 != 0) return std::nullopt;
  for (int padding = 0; padding < 2 && letters.ends_with('='); ++padding) letters.remove_suffix(1);
  std::string out;
  out.reserve(letters.size() / 4 * 3 + 2);
  uint32_t bits = 0;
  int num_bits = 0;
  for (const char letter : letters) {
    const int six = bits_of(letter);
    if (six < 0) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(six);
    num_bits += 6;
    if (num_bits < 8) continue;
    num_bits -= 8;
    out += static_cast<char>(bits >> num_bits & 0xffU);
  }
  return out;
}

}  // namespace heed
