// Numbers as text, for messages.
#include "core/error.h"

#include <charconv>
#include <cmath>

namespace heed::detail {

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

}  // namespace heed::detail
