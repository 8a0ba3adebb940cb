// Ranges of Unicode code points, and whether one of them holds a code point.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace heed {

/// Code points from `first` to `last`.
struct CodeRange {
  char32_t first;  ///< the lowest code point
  char32_t last;   ///< the highest code point, which belongs to the range
};

/// True where one of the ranges, which ascend, holds the code point.
template <size_t n>
bool is_in(const CodeRange (&ranges)[n], char32_t code) {
  const auto* range = std::lower_bound(std::begin(ranges), std::end(ranges), code,
                                       [](const CodeRange& one, char32_t value) { return one.last < value; });
  return range != std::end(ranges) && range->first <= code;
}

}  // namespace heed
