// The shortest digits of a double.
#include "heed/core/io/number_text.h"

#include <charconv>
#include <cmath>

namespace heed {

std::string exact_number(double value) {
  if (std::isnan(value)) return "nan";
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value);
  return std::string(buffer, end.ptr);
}

}  // namespace heed
