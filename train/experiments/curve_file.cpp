// Writes curves of runs as CSV files, and reads them strictly: such files come from other machines, and
// people edit them.
#include <algorithm>
#include <cmath>

#include "heed/core/error.h"
#include "heed/core/io/ascii.h"
#include "heed/core/io/files.h"
#include "heed/core/io/number_text.h"
#include "heed/core/io/terminal.h"
#include "heed/data/text/text.h"
#include "heed/train/experiments/run_curve.h"

namespace heed {
namespace {

constexpr std::string_view common_columns = "step,seconds,train_loss,valid_loss";
constexpr std::string_view score_prefix = ",valid_";  // begins the column of the score
constexpr int64_t max_curve_bytes = int64_t{16} << 20;
constexpr size_t max_shown = 40;  // bytes of a value in an error

std::string rounded_value(double value) { return std::isfinite(value) ? formatted("%.5g", value) : ""; }

std::string seconds_text(double value) { return std::isfinite(value) ? formatted("%.2f", value) : ""; }

/// The names of the columns, and a line for each point.
std::string curve_lines(const RunCurve& curve) {
  std::string out(common_columns);
  if (!curve.score.empty()) out += text(score_prefix, curve.score);
  out += "\n";
  for (const CurvePoint& point : curve.points) {
    out += text(point.step, ",", seconds_text(point.seconds), ",", rounded_value(point.train_loss), ",",
                rounded_value(point.valid_loss));
    if (!curve.score.empty()) out += "," + rounded_value(point.valid_score);
    out += "\n";
  }
  return out;
}

/// Reads the lines of a curve: facts, the names of the columns, points.
class CurveReader {
 public:
  explicit CurveReader(const Path& file) : bytes_(io::read(file, max_curve_bytes)) {
    out_.name = file.string();
    check_text(bytes_, out_.name);
  }

  CurveFile read() {
    for (const std::string_view line : split_lines(bytes_)) {
      ++line_;
      if (terminal_word(line) != line) refuse(line, "a line has no control characters");
      if (has_columns_)
        read_point(line);
      else if (line.starts_with("#"))
        read_fact(line);
      else
        read_columns(line);
    }
    if (!bytes_.ends_with('\n')) refuse("", "the last line ends with a line break; the file is cut short");
    if (out_.curve.points.empty()) refuse("", "lines of points follow; the file is cut short");
    check_count();
    return std::move(out_);
  }

 private:
  /// Fails with the number of the line, what was found and what is legal.
  [[noreturn]] void refuse(std::string_view found, std::string_view legal) const {
    fail(Fault::data, out_.name, ":", std::max<int64_t>(line_, 1), ": '", shown(found, max_shown),
         "': ", legal, ".");
  }

  void read_fact(std::string_view line) {
    const size_t end = line.find(": ");
    if (!line.starts_with("# ") || end == line.npos || end == 2)
      refuse(line, "a line before the names of the columns is '# NAME: VALUE'");
    const std::string name(line.substr(2, end - 2));
    if (!out_.facts.emplace(name, line.substr(end + 2)).second) refuse(name, "each fact stands there once");
    out_.lines[name] = line_;
  }

  void read_columns(std::string_view line) {
    const std::string_view score = line.substr(std::min(line.size(), common_columns.size()));
    const std::string_view name = score.substr(std::min(score.size(), score_prefix.size()));
    const bool is_word =
        std::all_of(name.begin(), name.end(), [](char c) { return is_ascii_alphanumeric(c) || c == '_'; });
    const bool has_score = score.starts_with(score_prefix) && !name.empty() && is_word;
    if (!line.starts_with(common_columns) || !(score.empty() || has_score))
      refuse(line, text("the names of the columns are ", common_columns, ", or these and ",
                        score_prefix.substr(1), "SCORE"));
    has_columns_ = true;
    num_columns_ = has_score ? 5 : 4;
    out_.curve.score = name;
    out_.curve.higher_is_better = higher_is_better(out_.curve.score);
  }

  void read_point(std::string_view line) {
    const std::vector<std::string_view> cells = split_fields(line, ',');
    if (cells.size() != num_columns_)
      refuse(line, text("a point has ", num_columns_, " cells, one for each column"));
    const std::optional<int64_t> step = parsed_integer(cells[0]);
    const int64_t step_before = out_.curve.points.empty() ? -1 : out_.curve.points.back().step;
    if (!step || *step <= step_before || *step > max_curve_step)
      refuse(cells[0], text("a step is a whole number from ", step_before + 1, " to ", max_curve_step));
    CurvePoint out{.step = *step,
                   .seconds = number(cells[1], "seconds"),
                   .train_loss = number(cells[2], "train_loss"),
                   .valid_loss = number(cells[3], "valid_loss")};
    if (out.seconds < 0) refuse(cells[1], "seconds are 0 or more");
    if (num_columns_ > 4) out.valid_score = number(cells[4], "valid_" + out_.curve.score);
    if (out_.curve.score == "accuracy" && (out.valid_score < 0 || out.valid_score > 1))
      refuse(cells[4], "an accuracy is from 0 to 1");
    out_.curve.points.push_back(out);
  }

  /// The number in a cell; NaN for an empty one.
  double number(std::string_view cell, const std::string& column) const {
    if (cell.empty()) return CurvePoint::none;
    const std::optional<double> value = parsed_number(cell);
    if (!value) refuse(cell, column + " is a number such as 0.35, or nothing");
    return *value;
  }

  /// Fails if the file has fewer or more points than its header says.
  void check_count() const {
    const auto found = out_.facts.find("points");
    if (found == out_.facts.end()) return;
    const std::string_view words = found->second;
    const std::optional<int64_t> count = parsed_integer(words.substr(0, words.find(' ')));
    const auto num_points = static_cast<int64_t>(out_.curve.points.size());
    if (!count || *count != num_points)
      fail(Fault::data, out_.name, ":", out_.lines.at("points"), ": '", shown(words, max_shown),
           "': the line must begin with the number of points that follow, ", num_points,
           "; the file is cut short or changed.");
  }

  CurveFile out_;
  std::string bytes_;
  int64_t line_ = 0;
  bool has_columns_ = false;
  size_t num_columns_ = 0;
};

}  // namespace

std::string curve_csv(const RunCurve& curve, const FactList& facts, size_t max_bytes) {
  std::string head;
  for (const auto& [name, value] : facts) {
    std::string words = value;
    std::replace_if(
        words.begin(), words.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
    head += text("# ", name, ": ", terminal_word(words), "\n");
  }
  RunCurve few = curve;
  for (size_t max_points = curve.points.size();; max_points = max_points * 9 / 10) {
    if (max_points < curve.points.size()) few = thinned(curve, max_points);
    const std::string out =
        text(head, "# points: ", few.points.size(), " of ", curve.points.size(),
             "; train_loss is the mean over the steps since the point before\n", curve_lines(few));
    if (out.size() <= max_bytes || max_points <= 3) return out;
  }
}

CurveFile read_curve_csv(const Path& file) { return CurveReader(file).read(); }

}  // namespace heed
