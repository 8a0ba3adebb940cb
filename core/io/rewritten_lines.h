// Several lines on the terminal of standard error that are replaced again and again.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace heed::io {

/// Writes these lines in place of the `num_before` lines that the last call wrote, without ending the last
/// one; false when standard error cannot be written. Each line must be shorter than the terminal is wide.
bool rewrite_error_lines(const std::vector<std::string>& lines, size_t num_before);

}  // namespace heed::io
