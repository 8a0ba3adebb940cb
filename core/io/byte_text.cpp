// Sizes of memory with two or three digits.
#include "heed/core/io/byte_text.h"

#include "heed/core/io/number_text.h"

namespace heed {

std::string bytes_text(int64_t bytes) {
  if (bytes < 1000) return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
  const auto value = static_cast<double>(bytes);
  if (value >= 1e9) return formatted("%.1f GB", value / 1e9);
  if (value >= 1e6) return formatted(value < 1e7 ? "%.1f MB" : "%.0f MB", value / 1e6);
  return formatted(value < 1e4 ? "%.1f kB" : "%.0f kB", value / 1e3);
}

}  // namespace heed
