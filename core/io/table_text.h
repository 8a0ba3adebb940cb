// Text laid out in columns: lines wrapped at words, aligned tables, and tables in Markdown.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "heed/core/io/terminal.h"

namespace heed {

/// A number of columns that stands for lines of any width.
inline constexpr int64_t unlimited_columns = std::numeric_limits<int64_t>::max();

/// The words of `text` in lines of at most `columns` columns, each of them ended; every line after the first
/// begins with `indent`. Line ends in the text stay. A word that is wider than a line is broken after commas
/// and bars; one without them stays whole.
std::string folded(std::string_view text, int64_t columns, std::string_view indent = "");

/// Wraps each line of `text` that is wider than `columns`. Continuation lines begin under the second column
/// of the line, where two blanks or more set one off ("  name    what it is"), else under its first letter,
/// or two columns to the right where the line is not indented.
std::string folded_lines(std::string_view text, int64_t columns);

/// The cells of one row. Cells may have several lines.
using TableRow = std::vector<std::string>;

/// How aligned_table() lays out a table.
struct TableLayout {
  int64_t columns = output_columns();  ///< width of the terminal, which no line exceeds
  std::string alignment = {};          ///< a letter for each column, l or r (numbers); l where none is given
  size_t indent = 0;                   ///< blanks before each line
};

/// Rows as lines, with two blanks between columns; the first row has the headings. The last cell of a row
/// with fewer cells than others extends to the end of the line. Where the lines are too wide, cells of
/// columns aligned to the left are wrapped, the widest first; where that is not enough, the columns that do
/// not fit follow below as a table of their own, with the first column repeated.
std::string aligned_table(const std::vector<TableRow>& rows, const TableLayout& layout = {});

/// A Markdown table; the first row has the headings.
std::string markdown_table(const std::vector<TableRow>& rows);

}  // namespace heed
