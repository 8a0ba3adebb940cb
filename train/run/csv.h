// Cells of CSV files, safe against formulas in spreadsheets.
#pragma once

#include <string>

namespace heed {

/// Quotes the text of a cell and doubles the quotes in it. Names of files and folders may begin like a
/// formula
/// (= + - @, tab, return, newline): such text gets an apostrophe in front, for which spreadsheets take it as
/// text. A number keeps its sign without one.
std::string csv_text(const std::string& cell);

/// Quotes the text of a cell only where necessary: for column names.
std::string csv_name(const std::string& cell);

}  // namespace heed
