// Which of the batches of a run to compute, to know what the largest and the mean one take.
#pragma once

#include <optional>
#include <vector>

#include "heed/train/tasks/task.h"

namespace heed {

/// A batch by where it is planned.
struct BatchPlace {
  int64_t epoch = 0;     ///< as Task::plan() counts
  int64_t position = 0;  ///< in the plan of that epoch
};

/// The batches that a run has planned, told apart by their extents alone. What a model makes of them is
/// measured on a few, so nothing here knows any model: on a typical one, on those that have most of one
/// extent, and then on those that a sum of the extents, fitted to what was measured so far, lets expect to be
/// larger still.
class WorstCaseBatches {
 public:
  /// Plans epochs until there are `batches`, or 20,000 and an epoch is whole; leaves the task on some epoch.
  WorstCaseBatches(Task& task, int64_t batches);

  /// The next batch to measure; nothing when no other is expected to take more memory.
  std::optional<BatchPlace> next();
  /// What the batch that next() named took: the most bytes alive, and operations.
  void took(double bytes, double operations);

  /// The batch nearest to the mean of all.
  BatchPlace typical() const { return kinds_[typical_].first; }
  /// Operations of the mean batch over those of the typical one.
  double mean_over_typical() const;

 private:
  /// Batches of the same extents.
  struct Kind {
    std::vector<double> batch_cost;  // as shares of the largest, 0 .. 1
    BatchPlace first;
    double count = 0;
    bool measured = false;
  };
  struct Measured {
    size_t kind;
    double bytes, operations;
  };

  size_t nearest_to_mean() const;
  std::vector<double> fit(double Measured::*what) const;

  std::vector<Kind> kinds_;
  std::vector<double> mean_;  // of the extents
  std::vector<Measured> measured_;
  size_t typical_ = 0, asked_ = 0;
};

}  // namespace heed
