// Metrics of a run by step: metrics.jsonl, TensorBoard events, and a CSV table.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "heed/core/io/files.h"
#include "heed/train/run/tensorboard.h"

namespace heed {

/// Appends one JSON object a line, {"step": 120, "loss": 1.25}, each in a single write, and the same to
/// TensorBoard.
class MetricsLog {
 public:
  /// Opens or creates the file of lines; removes a line that a kill cut short.
  MetricsLog(const Path& lines, const Path& tensorboard);

  /// `metrics.log(step, {{"loss", loss}, {"learning_rate", rate}})`. Writes numbers in the shortest form that
  /// reads back as the same float or double, and null where they are not finite.
  void log(int64_t step, const std::vector<Scalar>& numbers);
  /// Removes what was logged after `step`, here and in TensorBoard, and validation scores (valid_...) after
  /// the step `validated`. Call it before resuming from a checkpoint of this step, so that no step is logged
  /// twice.
  void truncate_to(int64_t step, int64_t validated = INT64_MAX);
  /// Flushes both to disk. Call it before writing a checkpoint, so that no line before it is lost.
  void sync();

 private:
  Path path_;
  std::optional<io::Appender> lines_;
  TensorBoard tensorboard_;
};

/// The values of one metric over the run.
struct MetricSeries {
  std::string name;            ///< "train_loss", "valid_bleu"
  std::vector<int64_t> steps;  ///< ascending, one for each value
  std::vector<double> values;  ///< NaN where it was not finite
};

/// All series of a metrics.jsonl, in the order in which their names first appear. Skips damaged lines; empty
/// when the file does not exist.
std::vector<MetricSeries> read_metrics(const Path& lines);

/// Writes the series of a metrics.jsonl as comma-separated values: one row a step, empty where a metric was
/// not logged.
void write_metrics_csv(const Path& lines, const Path& table);

}  // namespace heed
