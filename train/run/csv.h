// Cells of CSV files that a spreadsheet shows and does not run.
#pragma once

#include <string>

namespace heed {

/// Text as a quoted cell, its quotes doubled. Names out of files and folders may begin as a formula does
/// (= + - @, tab, return, newline): such text gets an apostrophe in front, which spreadsheets take for "this
/// is text". A number stays what it is, with its sign. Numbers that we compute need none of this.
std::string csv_text(const std::string& words);

/// The same without quotes where none are needed: for the names in the head.
std::string csv_name(const std::string& words);

}  // namespace heed
