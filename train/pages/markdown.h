// Markdown of the generated reference pages, in lines of at most 120 columns.
#pragma once

#include <string>

namespace heed {

/// The words of `body` in lines of at most 120 columns; lines after the first begin with `indent`.
std::string markdown_text(const std::string& body, const std::string& indent);
/// "- `term`: help".
std::string markdown_entry(const std::string& term, const std::string& help);

}  // namespace heed
