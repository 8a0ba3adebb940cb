// Refuses TOML that would crash the parser.
#pragma once

#include <string>

namespace heed {

/// A usage error for text other than the TOML of settings: UTF-8 without control characters, ASCII outside of
/// quotes and comments, no lists but those of tables ([[name]]), no inline tables, one value a line. The
/// parser crashes on other text: toml++ 3.3 fails an assertion on a group's `[` and NUL or comma, on a list's
/// `[` and `}`, and on what looks like a date, a blank and one digit, and overflows the stack on a name of
/// many dots.
void check_toml(const std::string& all, const std::string& name);

}  // namespace heed
