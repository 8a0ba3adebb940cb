// Quotes cells of CSV files.
#include "heed/train/run/csv.h"

#include <charconv>
#include <string_view>

namespace heed {
namespace {

bool is_number(std::string_view cell) {
  double value = 0;
  const char* end = cell.data() + cell.size();
  const auto [parsed_end, error] = std::from_chars(cell.data(), end, value);
  return error == std::errc() && parsed_end == end;
}

/// Whether a spreadsheet would compute a cell, by its first character.
bool is_formula(std::string_view cell) {
  return !cell.empty() && std::string_view("=+-@\t\r\n").find(cell[0]) != std::string_view::npos &&
         !is_number(cell);
}

}  // namespace

std::string csv_text(const std::string& cell) {
  std::string out = is_formula(cell) ? "\"'" : "\"";
  for (const char letter : cell) out.append(letter == '"' ? 2 : 1, letter);
  return out + '"';
}

std::string csv_name(const std::string& cell) {
  const bool is_plain = !is_formula(cell) && cell.find_first_of(",\"\n\r") == std::string::npos;
  return is_plain ? cell : csv_text(cell);
}

}  // namespace heed
