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
  int64_t step = 0;           ///< steps taken, over all sessions of the run
  double seconds = none;      ///< training time over all sessions, validations included, pauses not
  double train_loss = none;   ///< mean over the steps since the point before
  double valid_loss = none;   ///< loss of a validation at this step
  double valid_score = none;  ///< RunCurve::score of a validation at this step
};

/// The points of a run, by ascending steps.
struct RunCurve {
  std::string score;               ///< the validation score: "accuracy"; empty: only its loss
  bool higher_is_better = true;    ///< whether a higher score is better; a lower loss always is
  std::vector<CurvePoint> points;  ///< one for each logged step and each validation

  /// The point with the best validation, by its score, else by its loss; null: there was none.
  const CurvePoint* best() const;
  /// The last point with a validation; null: there was none.
  const CurvePoint* last() const;
};

/// Joins the series of a run, as in its metrics.jsonl. `score` is the name of the validation score that is
/// wanted; where it is "loss" or was not logged, the curve has only the loss.
RunCurve joined_curve(const std::vector<MetricSeries>& metrics, const std::string& score);
/// The curve of the metrics.jsonl of a run, as joined_curve() makes it; without points where no such file
/// exists.
RunCurve read_curve(const Path& metrics, const std::string& score);

/// The curve with at most `max_points` points (3 at least), evenly spread: the first, the last and the best
/// stay, and of the others those with a validation rather than those without. The training loss of a point is
/// the mean over all steps since the point before.
RunCurve thinned(const RunCurve& curve, size_t max_points);

/// True for the validation scores "accuracy" and "bleu", false for losses and error rates.
bool higher_is_better(const std::string& score);

/// The curve as CSV of at most `max_bytes`, thinned as far as that takes: a line "# name: value" for each of
/// `facts` (control characters in it made visible), a line that says how many points are left out, the names
/// of the columns, and a line for each point.
std::string curve_csv(const RunCurve& curve, const std::vector<std::pair<std::string, std::string>>& facts,
                      size_t max_bytes = 60'000);

/// What curve_csv() has written.
struct CurveFile {
  std::string name;                          ///< name of the file, for errors
  std::map<std::string, std::string> facts;  ///< facts in the lines "# name: value"
  std::map<std::string, int64_t> lines;      ///< line of each fact, from 1
  RunCurve curve;                            ///< curve that the file holds
};
/// The greatest step that a file may have: a double holds it exactly.
inline constexpr int64_t max_curve_step = int64_t{1} << 53;
/// Reads a file of curve_csv(). Fault::data that names the file, the line, the value and what it must be,
/// where anything is none of what that writes: other columns or cells, numbers of another form, steps that do
/// not ascend, fewer points than the header says, or none.
CurveFile read_curve_csv(const Path& file);

/// The curve as the series "loss" (training), "seconds", "valid_loss" and the score, under the names they
/// have in metrics.jsonl, thinned to `max_points` points each.
std::vector<MetricSeries> curve_series(const RunCurve& curve, size_t max_points);

}  // namespace heed
