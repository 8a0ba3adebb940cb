// Tables as text: aligned columns, and Markdown.
#pragma once

#include <string>
#include <vector>

namespace heed {

/// The cells of one row.
using TableRow = std::vector<std::string>;

/// Rows of equally many cells, one a line, columns two spaces apart.
std::string aligned_table(const std::vector<TableRow>& rows);
/// The same as a Markdown table; the first row is its head.
std::string markdown_table(const std::vector<TableRow>& rows);

}  // namespace heed
