// Published results: tables of papers, with their sources (train/published.json).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heed {

/// What a table measures, and when ours counts as reproduced.
enum class Measure {
  accuracy,          ///< percent of the test set; tolerance in points
  loss,              ///< nats on validation data; tolerance in nats
  crossover,         ///< a length, the shorter the better; tolerance is a share of the paper's
  steps_per_second,  ///< as speed over the first row; tolerance is a share of the paper's
  sooner             ///< how many times sooner than the first row its last training loss is reached
};

/// One task of a table.
struct PublishedColumn {
  std::string name, preset;
  int64_t head_width = 0;  ///< of a crossover, which has no preset
  std::string real_data;   ///< what --data must give for the values to mean the same; empty: nothing
  std::string note{};      ///< what the paper's number is, where that needs a word
};

/// One model of a table.
struct PublishedRow {
  std::string name;
  std::string attention;       ///< empty: only its published values are shown
  std::vector<double> values;  ///< one a column; NaN: none
  std::string note;
};

struct PublishedTable {
  std::string name, about, source;
  Measure measure = Measure::accuracy;
  double tolerance = 0;
  std::string metric{};  ///< of validation, that the values are compared with; empty: the score itself
  std::vector<PublishedColumn> columns;
  std::vector<PublishedRow> rows;
};

/// All tables, in the order of the file.
const std::vector<PublishedTable>& published();
/// Fails with the nearest name and the list.
const PublishedTable& published_table(const std::string& name);

/// What ours says about the paper's.
enum class Verdict { reproduced, better, below, unknown };
/// `deviation` over the seeds widens the tolerance; unknown where the paper has no value.
Verdict verdict_on(const PublishedTable& table, double paper, double ours, double deviation);
const char* to_string(Verdict verdict);

}  // namespace heed
