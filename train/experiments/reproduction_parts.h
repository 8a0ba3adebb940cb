// Internal: shared by the parts of a reproduction.
#pragma once

#include "heed/core/io/json.h"
#include "heed/train/experiments/reproduction.h"

namespace heed {

/// One cell in progress.
struct Work {
  const PublishedRow* row;        ///< of the published table
  const PublishedColumn* column;  ///< of the published table
  size_t column_index;            ///< index of `column`, for PublishedRow::values
  bool asked;                     ///< named in ReproductionOptions::rows
  std::string place;              ///< index among the cells that run: "3 of 35"
  std::vector<PlannedRun> plans;  ///< one run for each seed
  Cell cell;                      ///< what is known of it so far
};

/// Sets a cell's remark and exit code instead of a value.
void give_up(Work& work, const Error& why);

/// The settings of a cell that needs training.
Config config_of(const Work& work, const ReproductionOptions& options, int64_t seed);
/// The JSON object that a subprocess prints last; runs it once and caches the object in `file`. Throws
/// Stopped on a signal.
Json kept_object(const Path& file, const std::vector<std::string>& arguments);

/// Measures cells that need no training: steps per second, and lengths from which attention is faster than
/// softmax.
void time_cells(const PublishedTable& table, const ReproductionOptions& options, std::vector<Work>& all);
/// The same for Measure::crossover.
void cross_cells(const PublishedTable& table, const ReproductionOptions& options, std::vector<Work>& all);

}  // namespace heed
