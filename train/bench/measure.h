// How the benchmarks measure, and the table they print.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/json.h"

namespace heed::bench {

/// The middle one of some numbers; the lower of the two middle ones.
double median(std::vector<double> values);

/// Median seconds of work(), called once unmeasured and then until both `least` calls and `budget` seconds
/// are over.
double median_time(const std::function<void()>& work, double budget = 0.3, size_t least = 5);

/// Seconds of one call.
double timed(const std::function<void()>& work);

/// How often another program took the processor from this one, a second, since the object was made: many
/// times where the machine was not ours alone.
class Interruptions {
 public:
  Interruptions();
  double per_second() const;

 private:
  int64_t before_;
  double began_;
};

/// One column: its heading, the member of a row it shows, and the decimals of its numbers.
struct Column {
  const char* heading;
  const char* key;
  int decimals = 2;
};

/// Rows printed as they come: a line about the machine and a Markdown table that lines up in a terminal, or
/// one JSON object a line.
class Table {
 public:
  Table(std::vector<Column> columns, bool json) : columns_(std::move(columns)), json_(json) {}
  void row(const Json& row);
  /// Says so where a row has more than a few interruptions_per_s.
  ~Table();
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

 private:
  std::vector<Column> columns_;
  bool json_;
  bool begun_ = false;
  std::string disturbed_;
};

/// Puts into a row what every figure depends on: threads, instruction set, OpenBLAS core.
Json with_machine_facts(Json row);

/// Bytes of the process that were in memory at once since the last reset_resident_peak(), or since it
/// started where the system cannot reset.
int64_t resident_peak();
void reset_resident_peak();

}  // namespace heed::bench
