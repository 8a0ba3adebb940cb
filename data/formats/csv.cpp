// The parser of comma-separated values, and its columns as tensors.
#include "heed/data/formats/csv.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "heed/core/io/files.h"
#include "heed/core/io/number_text.h"

namespace heed {

/// Reads the text cell by cell, and counts lines and columns for errors.
class CsvTable::Reader {
 public:
  Reader(std::string_view text, const std::string& name) : text_(text), name_(name) {
    if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);
  }

  /// The cells of the next line that is not empty; none at the end.
  std::vector<Cell> row() {
    while (at_ < text_.size() && at_line_end()) skip_line_end();
    std::vector<Cell> out;
    while (at_ < text_.size()) {
      out.push_back(cell());
      if (at_ < text_.size() && text_[at_] == ',') {
        advance();
        if (at_ < text_.size()) continue;
        out.push_back({"", line_, column_});  // the empty cell after the last comma of the file
      }
      if (at_ < text_.size()) skip_line_end();
      break;
    }
    return out;
  }

 private:
  bool at_line_end() const {
    return text_[at_] == '\n' || (text_[at_] == '\r' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n');
  }
  void skip_line_end() {
    while (text_[at_] != '\n') ++at_;
    ++at_;
    ++line_;
    column_ = 1;
  }
  /// Moves over one byte.
  void advance() {
    if (text_[at_] == '\n') {
      ++line_;
      column_ = 0;
    }
    ++at_;
    ++column_;
  }
  /// Reads a cell, up to the comma or line end behind it.
  Cell cell() {
    Cell out{"", line_, column_};
    if (text_[at_] == '"') {
      read_quoted(out);
    } else {
      while (at_ < text_.size() && text_[at_] != ',' && !at_line_end()) {
        out.text += text_[at_];
        advance();
      }
    }
    return out;
  }
  /// Reads a cell in double quotes, in which a doubled quote stands for one.
  void read_quoted(Cell& out) {
    advance();
    for (;;) {
      if (at_ == text_.size())
        fail(Fault::data, name_, ":", out.line, ":", out.column,
             ": the quote that opens here is not closed.");
      if (text_[at_] != '"') {
        out.text += text_[at_];
      } else if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
        out.text += '"';
        advance();
      } else {
        break;
      }
      advance();
    }
    advance();
    if (at_ < text_.size() && text_[at_] != ',' && !at_line_end()) {
      fail(Fault::data, name_, ":", line_, ":", column_, ": '", shown(text_.substr(at_, 1)),
           "' stands behind a closed quote. A comma or the line's end must; a quote inside is doubled.");
    }
  }

  std::string_view text_;
  const std::string& name_;
  size_t at_ = 0;
  int64_t line_ = 1, column_ = 1;
};

CsvTable::CsvTable(std::string_view text, const std::string& name) : name_(name) {
  Reader reader(text, name_);
  const std::vector<Cell> header = reader.row();
  if (header.empty()) fail(Fault::data, name_, ":1:1: there is no header line. It must name the columns.");
  for (const Cell& cell : header) {
    if (cell.text.empty())
      fail(Fault::data, place_of(cell), "a column of the header has no name. Give it one.");
    if (!column_indices_.emplace(cell.text, static_cast<int64_t>(columns_.size())).second)
      fail(Fault::data, place_of(cell), "the header names '", shown(cell.text), "' twice. Rename one.");
    columns_.push_back(cell.text);
  }
  for (std::vector<Cell> row = reader.row(); !row.empty(); row = reader.row()) {
    if (row.size() != columns_.size()) {
      const Cell& faulty = row.size() > columns_.size() ? row[columns_.size()] : row.back();
      fail(Fault::data, place_of(faulty), "this row has ", row.size(), row.size() == 1 ? " cell" : " cells",
           ", the header has ", columns_.size(), ". They must be as many.");
    }
    std::move(row.begin(), row.end(), std::back_inserter(cells_));
    ++rows_;
  }
}

std::string CsvTable::place_of(const Cell& cell) const {
  return heed::text(name_, ":", cell.line, ":", cell.column, ": ");
}

int64_t CsvTable::index_of(const std::string& column) const {
  const auto found = column_indices_.find(column);
  if (found != column_indices_.end()) return found->second;
  std::string known;
  for (const std::string& name : columns_) known += (known.empty() ? "" : ", ") + shown(name);
  fail(name_, " has no column '", shown(column), "'. It has: ", shown(known, 1000), ".");
}

const CsvTable::Cell& CsvTable::at(int64_t row, int64_t column) const {
  return cells_[static_cast<size_t>(row) * columns_.size() + static_cast<size_t>(column)];
}

const CsvTable::Cell& CsvTable::checked_at(int64_t row, int64_t column) const {
  if (row < 0 || row >= rows_) fail(name_, " has no row ", row, ". It has ", rows_, ", counted from 0.");
  return at(row, column);
}

const std::string& CsvTable::cell(int64_t row, const std::string& column) const {
  return checked_at(row, index_of(column)).text;
}

double CsvTable::number(int64_t row, const std::string& column) const {
  return number_in(checked_at(row, index_of(column)), column);
}

double CsvTable::number_in(const Cell& cell, const std::string& column) const {
  std::string_view digits = cell.text;
  while (digits.starts_with(' ')) digits.remove_prefix(1);
  while (digits.ends_with(' ')) digits.remove_suffix(1);
  if (digits.starts_with('+') && !digits.starts_with("+-")) digits.remove_prefix(1);
  const std::optional<double> value = parsed_number(digits);
  if (!value)
    fail(Fault::data, place_of(cell), "'", shown(cell.text), "' in column '", shown(column),
         "' is no finite number. Fix it, or leave the column out.");
  return *value;
}

Tensor CsvTable::numbers(const std::vector<std::string>& columns) const {
  std::vector<int64_t> indices;
  for (const std::string& column : columns) indices.push_back(index_of(column));
  Tensor out(Shape{rows_, static_cast<int64_t>(columns.size())}, DType::f32, Device::cpu);
  float* next = out.data<float>();
  for (int64_t row = 0; row < rows_; ++row) {
    for (size_t i = 0; i < indices.size(); ++i) {
      const Cell& cell = at(row, indices[i]);
      const auto value = static_cast<float>(number_in(cell, columns[i]));
      if (!std::isfinite(value))
        fail(Fault::data, place_of(cell), "'", shown(cell.text), "' in column '", shown(columns[i]),
             "' is beyond what f32 holds. Fix it, or leave the column out.");
      *next++ = value;
    }
  }
  return out;
}

std::vector<std::string> CsvTable::columns_without(const std::vector<std::string>& columns) const {
  std::set<int64_t> left_out;
  for (const std::string& column : columns) left_out.insert(index_of(column));
  std::vector<std::string> out;
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (!left_out.contains(static_cast<int64_t>(i))) out.push_back(columns_[i]);
  }
  return out;
}

std::vector<std::string> CsvTable::class_names(const std::string& column) const {
  const int64_t index = index_of(column);
  std::set<std::string> names;
  for (int64_t row = 0; row < rows_; ++row) names.insert(at(row, index).text);
  return {names.begin(), names.end()};
}

Tensor CsvTable::classes(const std::string& column) const {
  const std::vector<std::string> names = class_names(column);
  const int64_t index = index_of(column);
  Tensor out(Shape{rows_}, DType::i32, Device::cpu);
  for (int64_t row = 0; row < rows_; ++row) {
    const auto found = std::lower_bound(names.begin(), names.end(), at(row, index).text);
    out.data<int32_t>()[row] = static_cast<int32_t>(found - names.begin());
  }
  return out;
}

CsvTable read_csv(const Path& path) { return CsvTable(io::read_text(path), path.string()); }

}  // namespace heed
