// The numbers of a run, step by step: metrics.jsonl, TensorBoard events, and a table made of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/io.h"
#include "train/tensorboard.h"

namespace heed {

/// Appends one JSON object a line, {"step": 120, "loss": 1.25}, in one write each, and the same to
/// TensorBoard.
class MetricsLog {
 public:
  /// Continues the file of lines, or makes it; a line that was torn by a kill goes away.
  MetricsLog(const Path& lines, const Path& tensorboard);

  /// `metrics.log(step, {{"loss", loss}, {"rate", rate}})`. Numbers are written in the shortest form that
  /// reads back as the same float or double, and as null where they are not finite.
  void log(int64_t step, const std::vector<Scalar>& numbers);
  /// Drops what was logged after this step, here and for TensorBoard: to be called before a run goes on from
  /// a checkpoint of this step, so that no step stands there twice. And what is named valid_... after the
  /// step `validated`: of a validation that the run itself did not have.
  void rewind(int64_t step, int64_t validated = INT64_MAX);
  /// Forces both to the disk: to be called before a checkpoint is written, so that none is missing
  /// behind it.
  void sync();

 private:
  Path path_;
  std::optional<io::Appender> lines_;
  TensorBoard tensorboard_;
};

/// One named number over the run.
struct MetricSeries {
  std::string name;
  std::vector<int64_t> steps;
  std::vector<double> values;  ///< NaN where it was not finite
};

/// All series of a metrics.jsonl, in the order in which their names first appear. A torn or damaged line is
/// passed over; a file that does not exist has none.
std::vector<MetricSeries> read_metrics(const Path& lines);

/// The same as comma-separated values: one row a step, empty where a number was not logged.
void write_metrics_csv(const Path& lines, const Path& table);

}  // namespace heed
