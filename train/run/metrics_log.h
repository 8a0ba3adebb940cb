// Metrics of a run by step: metrics.jsonl, TensorBoard events, and a CSV table.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "heed/core/io/files.h"
#include "heed/train/run/tensorboard.h"

namespace heed {

/// Appends the metrics of steps to a file, as one JSON object a line, {"step": 120, "loss": 1.25}, each in a
/// single write, and to TensorBoard.
class MetricsLog {
 public:
  /// Opens or creates the file of lines; removes an incomplete last line, which a killed process leaves.
  MetricsLog(const Path& lines, const Path& tensorboard);

  /// `metrics.log(step, {{"loss", loss}, {"learning_rate", rate}})`. Writes numbers in the shortest form that
  /// reads back as the same float or double, and null where they are not finite.
  void log(int64_t step, const std::vector<Scalar>& numbers);
  /// Removes the metrics after `step`, in the file and in TensorBoard, and the validation scores (valid_...)
  /// after `validated_step`. Call it before resuming from a checkpoint of this step, so that no step is
  /// logged twice.
  void truncate_to(int64_t step, int64_t validated_step = INT64_MAX);
  /// Flushes the file and TensorBoard to disk. Call it before writing a checkpoint, so that no earlier line
  /// is lost.
  void sync();

 private:
  Path path_;
  std::optional<io::Appender> lines_;
  TensorBoard tensorboard_;
};

/// The values of one metric over the run.
struct MetricSeries {
  std::string name;            ///< "loss", "valid_bleu"
  std::vector<int64_t> steps;  ///< steps of the values, ascending
  std::vector<double> values;  ///< value at each of the steps; NaN where it was not finite
};

/// Reads all series of a metrics.jsonl, in the order in which their names first appear. Skips damaged lines;
/// returns none when the file does not exist.
std::vector<MetricSeries> read_metrics(const Path& lines);

/// Writes the series of a metrics.jsonl as comma-separated values: one row a step; the cell of a metric that
/// was not logged at the step is empty.
void write_metrics_csv(const Path& lines, const Path& table);

}  // namespace heed
