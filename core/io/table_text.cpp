// Tables as text.
#include "heed/core/io/table_text.h"

#include <algorithm>

namespace heed {

std::string aligned_table(const std::vector<TableRow>& rows) {
  std::vector<size_t> width;
  for (const TableRow& row : rows) {
    width.resize(std::max(width.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  }
  std::string out;
  for (const TableRow& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) line += row[i] + std::string(width[i] - row[i].size() + 2, ' ');
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return out;
}

std::string markdown_table(const std::vector<TableRow>& rows) {
  std::string out;
  for (const TableRow& row : rows) {
    out += "|";
    for (const std::string& cell : row) out += " " + cell + " |";
    out += "\n";
    if (&row != &rows.front()) continue;
    out += "|";
    for (size_t i = 0; i < row.size(); ++i) out += "---|";
    out += "\n";
  }
  return out;
}

}  // namespace heed
