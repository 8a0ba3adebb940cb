// Timing and tables of the benchmarks.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "heed/core/io/json.h"

namespace heed::bench {

/// The median; for an even count the lower of the two middle numbers.
double median(std::vector<double> values);

/// Median seconds of a call of run(), which is called once unmeasured, then at least `min_calls` times and
/// for at least `budget` seconds.
double median_time(const std::function<void()>& run, double budget = 0.3, size_t min_calls = 5);

/// Seconds of one call of run(), until the device has finished.
double timed(const std::function<void()>& run);

/// Involuntary context switches per second beyond which other programs disturb a measurement.
inline constexpr double max_interruptions = 60;

/// Counts the involuntary context switches of this process since construction; see max_interruptions.
class ContextSwitches {
 public:
  ContextSwitches();
  double per_second() const;

 private:
  int64_t before_;
  double began_;
};

/// A column of a table.
struct Column {
  const char* heading;
  const char* key;   ///< key of its values in a row's JSON object
  int decimals = 2;  ///< number of decimals of a number
};

/// A table that prints rows as they come: a line about the machine and a Markdown table, or one JSON object
/// per line. On a terminal that is narrower than the Markdown, each row is a table with headings of its own.
class Table {
 public:
  Table(std::vector<Column> columns, bool json) : columns_(std::move(columns)), json_(json) {}
  void row(const Json& row);
  /// Prints a warning if a row has more than a few interruptions_per_s.
  ~Table();
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

 private:
  std::vector<Column> columns_;
  bool json_;
  bool begun_ = false;
  std::vector<std::string> disturbed_;  // names of rows, without neighbours that are equal
};

/// Prints device, threads, instruction set and OpenBLAS core, which stand in a row's metadata, above a table.
void print_machine(const Json& row);

/// Adds device, threads, instruction set and OpenBLAS core, on which all numbers depend, to a row.
Json with_machine_metadata(Json row);

/// Peak resident bytes of the process since the last reset_resident_peak(), or since its start where the
/// system cannot reset.
int64_t resident_peak();
void reset_resident_peak();

}  // namespace heed::bench
