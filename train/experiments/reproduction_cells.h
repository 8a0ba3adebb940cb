// What the ways of running a table again share.
#pragma once

#include "core/json.h"
#include "train/reproduction.h"

namespace heed {

/// One cell on its way.
struct Work {
  const PublishedRow* row;
  const PublishedColumn* column;
  size_t column_index;
  bool asked;         ///< for by name
  std::string place;  ///< among the cells that run: "3 of 35"
  std::vector<PlannedRun> plans;
  Cell cell;
};

/// Leaves a cell without a value, with the reason and its code.
void give_up(Work& work, const Error& why);

/// The settings of a cell that trains.
Config config_of(const Work& work, const ReproductionOptions& options, int64_t seed);
/// A JSON object that a child prints last, made once and kept in a file. Throws Stopped when a signal came.
Json kept_object(const Path& file, const std::vector<std::string>& arguments);

/// Fills in cells that need no training: steps a second, and lengths from which one is faster than softmax.
void time_cells(const PublishedTable& table, const ReproductionOptions& options, std::vector<Work>& all);
void cross_cells(const PublishedTable& table, const ReproductionOptions& options, std::vector<Work>& all);

}  // namespace heed
