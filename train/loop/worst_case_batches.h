// Chooses which batches of a run to measure, to know the cost of the largest and of the mean one.
#pragma once

#include <optional>
#include <vector>

#include "heed/train/tasks/task.h"

namespace heed {

/// The position of a planned batch.
struct BatchPlace {
  int64_t epoch = 0;     ///< the argument of Task::plan()
  int64_t position = 0;  ///< number of the batch in that epoch
};

/// The batches that a run has planned, distinguished by Task::batch_cost() alone, whatever the model. It
/// proposes for measuring: a typical batch, those with the largest value of one cost, and then those for
/// which a weighted sum of the costs, fitted to the measurements so far, predicts still more memory.
class WorstCaseBatches {
 public:
  /// Plans epochs until there are `batches`, or 20,000 and an epoch is whole; leaves the task on some epoch.
  WorstCaseBatches(Task& task, int64_t batches);

  /// Chooses the next batch to measure; none when no other is expected to take more memory.
  std::optional<BatchPlace> next();
  /// Records the peak bytes and the operations of the batch that next() returned.
  void record(double bytes, double operations);

  /// The batch nearest to the mean of all.
  BatchPlace typical() const { return kinds_[typical_].first; }
  /// Operations of the mean batch over those of the typical one.
  double mean_over_typical() const;

 private:
  /// Batches of equal cost.
  struct Kind {
    std::vector<double> batch_cost;  // divided by the largest of all batches, 0 to 1
    BatchPlace first;                // the first such batch
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
  std::vector<double> mean_;  // mean cost of all batches
  std::vector<Measured> measured_;
  size_t typical_ = 0, asked_ = 0;
};

}  // namespace heed
