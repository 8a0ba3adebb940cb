// Quotes cells of CSV files.
#include "heed/train/run/csv.h"

#include <charconv>
#include <string_view>

namespace heed {
namespace {

bool is_number(std::string_view words) {
  double value = 0;
  const char* end = words.data() + words.size();
  const auto [at, error] = std::from_chars(words.data(), end, value);
  return error == std::errc() && at == end;
}

bool is_formula(std::string_view words) {
  return !words.empty() && std::string_view("=+-@\t\r\n").find(words[0]) != std::string_view::npos &&
         !is_number(words);
}

}  // namespace

std::string csv_text(const std::string& words) {
  std::string out = is_formula(words) ? "\"'" : "\"";
  for (const char letter : words) out.append(letter == '"' ? 2 : 1, letter);
  return out + '"';
}

std::string csv_name(const std::string& words) {
  const bool plain = !is_formula(words) && words.find_first_of(",\"\n\r") == std::string::npos;
  return plain ? words : csv_text(words);
}

}  // namespace heed
