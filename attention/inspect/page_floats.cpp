// Encodes numbers of a page, whatever the byte order of this machine.
#include "heed/attention/inspect/page_floats.h"

#include <cstdint>
#include <cstring>

#include "heed/attention/inspect/text_escapes.h"

namespace heed {

std::string picture::base64_floats(const std::vector<float>& numbers) {
  std::string bytes;
  bytes.reserve(numbers.size() * sizeof(float));
  for (const float number : numbers) {
    uint32_t bits = 0;
    std::memcpy(&bits, &number, sizeof bits);
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(bits >> shift & 255);
  }
  return base64(bytes);
}

}  // namespace heed
