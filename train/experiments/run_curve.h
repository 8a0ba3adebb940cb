// The curve of a run: losses and validation scores over steps and seconds of training, as CSV and as series.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "heed/train/run/metrics_log.h"

namespace heed {

/// One line of a curve. What was not measured is NaN.
struct CurvePoint {
  static constexpr double none = std::numeric_limits<double>::quiet_NaN();  ///< a value that was not measured
  int64_t step = 0;           ///< number of steps, over all sessions of the run
  double seconds = none;      ///< training time over all sessions, validations included, pauses not
  double train_loss = none;   ///< mean over the steps since the point before
  double valid_loss = none;   ///< loss of a validation at this step
  double valid_score = none;  ///< RunCurve::score of a validation at this step
};

/// The points of a run, by ascending steps.
struct RunCurve {
  std::string score;               ///< name of the validation score: "accuracy"; empty: only losses
  bool higher_is_better = true;    ///< whether a higher score is better; a lower loss always is
  std::vector<CurvePoint> points;  ///< one for each logged step and each validation

  /// The point with the best validation score, or the lowest validation loss without scores; null: none.
  const CurvePoint* best() const;
  /// The last point with a validation; null: none.
  const CurvePoint* last() const;
};

/// Seconds of training at a step, by a run's series "seconds", interpolated between logged steps; NaN: it is
/// empty.
double seconds_at(const MetricSeries& seconds, int64_t step);

/// Joins the series of a run, as in its metrics.jsonl. `score` is the name of the validation score that is
/// wanted; where it is "loss" or was not logged, the curve has only the loss.
RunCurve joined_curve(const std::vector<MetricSeries>& metrics, const std::string& score);
/// The joined_curve() of the metrics.jsonl of a run; without points where no such file exists.
RunCurve read_curve(const Path& metrics, const std::string& score);

/// The curve with at most `max_points` points (3 at least). The first, the last and the best point stay; the
/// others are evenly spread, and points with a validation are preferred. The training loss of a point is the
/// mean over all steps since the point before.
RunCurve thinned(const RunCurve& curve, size_t max_points);

/// True for the validation scores "accuracy" and "bleu", false for losses and error rates.
bool higher_is_better(const std::string& score);

/// Names and values in the header of a curve, in their order.
using FactList = std::vector<std::pair<std::string, std::string>>;

/// The curve as CSV, thinned until it has at most `max_bytes`: a line "# name: value" for each of `facts`
/// (control characters made visible), a line with the number of points, the names of the columns, and a line
/// for each point.
std::string curve_csv(const RunCurve& curve, const FactList& facts, size_t max_bytes = 60'000);

/// A file that curve_csv() has written, read back.
struct CurveFile {
  std::string name;                          ///< name of the file, for errors
  std::map<std::string, std::string> facts;  ///< facts in the lines "# name: value"
  std::map<std::string, int64_t> lines;      ///< line of each fact, from 1
  RunCurve curve;                            ///< curve that the file holds
};
/// The greatest step that a file may have: a double holds it exactly.
inline constexpr int64_t max_curve_step = int64_t{1} << 53;
/// Reads a file of curve_csv(). Fault::data that names file, line, value and legal values for anything that
/// curve_csv() does not write: other columns or cells, numbers of another form, steps that do not ascend,
/// fewer points than the header says, or none.
CurveFile read_curve_csv(const Path& file);

/// The curve, thinned to `max_points` points, as the series of metrics.jsonl: "loss" (training), "seconds",
/// "valid_loss" and the score.
std::vector<MetricSeries> curve_series(const RunCurve& curve, size_t max_points);

}  // namespace heed
