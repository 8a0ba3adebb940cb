// Writes, truncates and reads the lines of metrics.
#include "heed/train/run/metrics_log.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "heed/core/io/json.h"
#include "heed/core/io/no_follow_files.h"
#include "heed/train/run/csv.h"
#include "heed/train/run/renamed_settings.h"

namespace heed {
namespace {

/// Parses a line of metrics; none when it is empty or damaged.
std::optional<Json> parse_line(std::string_view line) {
  const size_t begin = line.find_first_not_of(" \t\r");  // spares the parser millions of empty lines
  if (begin == line.npos || line[begin] != '{') return std::nullopt;
  try {
    Json object = parse_json(line, "metrics");
    if (object.is_object() && object.at("step").is_integer()) return object;
  } catch (const Error&) {
    // A killed process has cut this line short; the lines before and after it are intact.
  }
  return std::nullopt;
}

/// Calls `visit(line, object)` for each intact line that ends in a newline.
template <class Visit>
void each_line(const std::string& bytes, Visit visit) {
  size_t begin = 0;
  for (size_t end = bytes.find('\n'); end != std::string::npos; end = bytes.find('\n', begin)) {
    const std::string_view line = std::string_view(bytes).substr(begin, end - begin);
    begin = end + 1;
    if (const std::optional<Json> object = parse_line(line)) visit(line, *object);
  }
}

std::string shortest_number(double value) { return std::isfinite(value) ? detail::number(value) : "null"; }

}  // namespace

MetricsLog::MetricsLog(const Path& lines, const Path& tensorboard) : path_(lines), tensorboard_(tensorboard) {
  io::truncate_after(path_, [](std::string_view) { return false; });
  lines_.emplace(path_);
}

void MetricsLog::log(int64_t step, const std::vector<Scalar>& numbers) {
  std::string line = text("{\"step\": ", step);
  for (const auto& [name, value] : numbers)
    line += text(", ", Json(name).dump(), ": ", shortest_number(value));
  lines_->line(line + "}");
  std::vector<Scalar> tagged = numbers;
  for (auto& [name, value] : tagged) {
    if (name == "learning_rate") name = "lr";  // the usual tag of TensorBoard
  }
  tensorboard_.write(step, tagged);
}

void MetricsLog::truncate_to(int64_t step, int64_t validated_step) {
  lines_.reset();
  io::check_regular(path_);  // reading a pipe would never end
  if (io::exists(path_)) {
    const std::string bytes = io::read(path_);
    std::string kept;
    each_line(bytes, [&](std::string_view line, const Json& object) {
      const auto is_score = [](const JsonMember& metric) { return metric.key.starts_with(score_prefix); };
      const bool has_scores = std::any_of(object.members().begin(), object.members().end(), is_score);
      if (object.at("step").integer() <= (has_scores ? std::min(step, validated_step) : step))
        kept.append(line).append(1, '\n');
    });
    if (kept.size() != bytes.size()) io::write_own(path_, kept);
  }
  lines_.emplace(path_);
  tensorboard_.truncate_to(step, validated_step);
}

void MetricsLog::sync() {
  lines_->sync();
  tensorboard_.sync();
}

std::vector<MetricSeries> read_metrics(const Path& lines) {
  std::vector<MetricSeries> all;
  if (!io::exists(lines)) return all;
  std::map<std::string, size_t> index_of_name;
  each_line(io::read(lines), [&](std::string_view, const Json& object) {
    const int64_t step = object.at("step").integer();
    for (const auto& [name, value] : object.members()) {
      if (name == "step" || !(value.is_number() || value.is_null())) continue;
      const std::string present_name(metric_now(name));
      const auto [index, is_new] = index_of_name.try_emplace(present_name, all.size());
      if (is_new) all.push_back({.name = present_name, .steps = {}, .values = {}});
      MetricSeries& series = all[index->second];
      series.steps.push_back(step);
      series.values.push_back(value.real());
    }
  });
  return all;
}

void write_metrics_csv(const Path& lines, const Path& table) {
  const std::vector<MetricSeries> all = read_metrics(lines);
  std::map<int64_t, std::vector<std::string>> cells_of_step;
  std::string out = "step";
  for (size_t column = 0; column < all.size(); ++column) {
    const MetricSeries& series = all[column];
    out += text(",", csv_name(series.name));
    for (size_t i = 0; i < series.steps.size(); ++i) {
      std::vector<std::string>& cells = cells_of_step[series.steps[i]];
      cells.resize(all.size());
      if (std::isfinite(series.values[i])) cells[column] = detail::number(series.values[i]);
    }
  }
  out += '\n';
  for (const auto& [step, cells] : cells_of_step) {
    out += std::to_string(step);
    for (const std::string& cell : cells) out += text(",", cell);
    out += '\n';
  }
  io::write_own(table, out);
}

}  // namespace heed
