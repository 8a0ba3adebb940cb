// Tab-separated tables inside the program: the words and shapes that synthetic data is made of.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "heed/core/error.h"
#include "heed/core/io/embedded_files.h"
#include "heed/data/text/text.h"

namespace heed {

/// The rows of data/synthetic/`name`, each of `columns` cells. The first cell of a row is never empty; cells
/// that a line lacks at its end are empty. Empty lines and lines that begin with # are skipped.
inline std::vector<std::vector<std::string_view>> embedded_table(const std::string& name, size_t columns) {
  std::vector<std::vector<std::string_view>> rows;
  for (const std::string_view line : split_lines(embedded_file("data/synthetic/" + name))) {
    if (line.empty() || line.starts_with('#')) continue;
    rows.push_back(split_fields(line, '\t'));
    if (rows.back().size() > columns)
      fail(Fault::internal, name, ": more than ", columns, " cells in '", line, "'.");
    rows.back().resize(columns);
  }
  return rows;
}

/// The words between blanks.
inline std::vector<std::string_view> split_words(std::string_view line) {
  std::vector<std::string_view> words = split_fields(line, ' ');
  std::erase(words, std::string_view());
  return words;
}

}  // namespace heed
