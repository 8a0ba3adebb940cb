// Three digits are enough to see what is too much.
#include "heed/core/io/byte_text.h"

#include <cstdio>

namespace heed {

std::string bytes_text(int64_t bytes) {
  if (bytes < 1000) return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
  char buffer[32];
  const auto value = static_cast<double>(bytes);
  if (value >= 1e9)
    std::snprintf(buffer, sizeof buffer, "%.1f GB", value / 1e9);
  else if (value >= 1e6)
    std::snprintf(buffer, sizeof buffer, value < 1e7 ? "%.1f MB" : "%.0f MB", value / 1e6);
  else
    std::snprintf(buffer, sizeof buffer, value < 1e4 ? "%.1f kB" : "%.0f kB", value / 1e3);
  return buffer;
}

}  // namespace heed
