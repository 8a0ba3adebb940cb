// Tables of comma-separated values, read as tensors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "heed/core/error.h"
#include "heed/core/tensor.h"

namespace heed {

/// A table of a header line and rows of as many cells, as text.
class CsvTable {
 public:
  /// Parses RFC 4180: cells between commas; a cell in double quotes may hold commas, line ends and doubled
  /// quotes; lines end with `\n` or `\r\n`; empty lines are skipped. `name`: the file's name in errors.
  /// Fault::data naming file, line and column (in bytes, from 1) for an open quote, letters behind a closed
  /// one, a row of more or fewer cells than the header, an empty or repeated column name, and no header.
  CsvTable(std::string_view text, const std::string& name);

  /// The names in the header.
  const std::vector<std::string>& columns() const { return columns_; }
  int64_t rows() const { return rows_; }  ///< number of rows, without the header
  /// A cell's text.
  const std::string& cell(int64_t row, const std::string& column) const;
  /// A cell's number. Fault::data naming file, line and column of a cell that is no finite number.
  double number(int64_t row, const std::string& column) const;

  /// Columns of numbers, f32 [rows, columns]. Fault::data naming file, line and column of a cell that is no
  /// finite number; Fault::usage naming all columns for one that is not there.
  Tensor numbers(const std::vector<std::string>& columns) const;
  /// All columns but these, in the order of the file: for numbers().
  std::vector<std::string> columns_without(const std::vector<std::string>& columns) const;
  /// The different texts of a column, sorted: the classes by their number.
  std::vector<std::string> class_names(const std::string& column) const;
  /// A column of classes, i32 [rows]: the index of each text in class_names().
  Tensor classes(const std::string& column) const;

 private:
  struct Cell {
    std::string text;
    int64_t line = 0, column = 0;  // place of the first character, from 1
  };
  class Reader;

  int64_t index_of(const std::string& column) const;
  const Cell& at(int64_t row, int64_t column) const;
  const Cell& checked_at(int64_t row, int64_t column) const;  // fails for a row that is not there
  double number_in(const Cell& cell, const std::string& column) const;
  std::string place_of(const Cell& cell) const;  // "file:line:column: "

  std::string name_;
  std::vector<std::string> columns_;
  std::unordered_map<std::string, int64_t> column_indices_;  // by the name of the column
  std::vector<Cell> cells_;                                  // row after row
  int64_t rows_ = 0;
};

/// The table of a file, inflated where it is gzip.
CsvTable read_csv(const Path& path);

}  // namespace heed
