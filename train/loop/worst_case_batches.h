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

/// Proposes batches of a run for measuring. Batches are distinguished by Task::batch_cost() alone. It
/// proposes a typical batch, then those with the largest value of one cost, then those for which a weighted
/// sum of the costs, fitted to the measurements so far, predicts still more memory.
class WorstCaseBatches {
 public:
  /// Lets the task plan epochs until they have `batches` batches, or an epoch ends after 20,000; leaves the
  /// task planned for any epoch.
  WorstCaseBatches(Task& task, int64_t batches);

  /// Proposes the next batch to measure; none where no other is expected to take more memory.
  std::optional<BatchPlace> next();
  /// Records the peak bytes and the number of operations of the batch that next() proposed.
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
  /// A measured batch.
  struct Measured {
    size_t kind;
    double bytes, operations;
  };

  size_t nearest_to_mean() const;
  std::vector<double> fit(double Measured::*quantity) const;

  std::vector<Kind> kinds_;
  std::vector<double> mean_;  // mean cost of all batches
  std::vector<Measured> measured_;
  size_t typical_ = 0, proposed_ = 0;  // kinds: the typical one, and the last that next() proposed
};

}  // namespace heed
