// Cells of CSV files, safe against formulas in spreadsheets.
#pragma once

#include <string>

namespace heed {

/// Text as a quoted cell, its quotes doubled. Names of files and folders may begin like a formula (= + - @,
/// tab, return, newline): such text gets an apostrophe in front, which spreadsheets read as text. Numbers
/// stay as they are, sign included. Computed numbers need no quoting.
std::string csv_text(const std::string& words);

/// Text as a cell that is quoted only where necessary: for column names.
std::string csv_name(const std::string& words);

}  // namespace heed
