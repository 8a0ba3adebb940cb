// Fuzz target: tables of comma-separated values.
#include "heed/data/formats/csv.h"

#include <cmath>
#include <optional>

#include "heed/tests/fuzz/input.h"
#include "heed/tests/fuzz/reader_rules.h"

using namespace heed;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = bytes_of(data, size);
  const std::string name = "table.csv";
  const law::Bounds bounds{.per_byte = 400};
  std::optional<CsvTable> table;
  if (!law::obeys(
          name, input, [&] { table.emplace(input, name); }, bounds))
    return 0;
  for (const std::string& column : table->columns()) {
    Tensor numbers;
    if (law::obeys(
            name, input, [&] { numbers = table->numbers({column}); }, bounds)) {
      for (const double value : numbers.to_doubles()) law::demand(std::isfinite(value), "a number is finite");
    }
  }
  const auto quoted = [](const std::string& text) {
    std::string out = "\"";
    for (const char c : text) out.append(c == '"' ? 2 : 1, c);
    return out + "\"";
  };
  const auto line = [&](const auto& cell_of) {
    std::string out;
    for (const std::string& column : table->columns())
      out += (out.empty() ? "" : ",") + quoted(cell_of(column));
    return out + "\n";
  };
  std::string written = line([](const std::string& column) { return column; });
  for (int64_t row = 0; row < table->rows(); ++row)
    written += line([&](const std::string& column) { return table->cell(row, column); });
  const CsvTable read(written, name);
  law::demand(read.columns() == table->columns() && read.rows() == table->rows(), "what is written is read");
  for (int64_t row = 0; row < read.rows(); ++row) {
    for (const std::string& column : read.columns())
      law::demand(read.cell(row, column) == table->cell(row, column), "a cell is as it was read");
  }
  return 0;
}
