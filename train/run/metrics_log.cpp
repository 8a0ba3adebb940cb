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

/// The object of one line; none when the line is damaged.
std::optional<Json> parsed(std::string_view line) {
  const size_t begin = line.find_first_not_of(" \t\r");  // empty lines by the million are passed over quickly
  if (begin == line.npos || line[begin] != '{') return std::nullopt;
  try {
    Json object = parse_json(line, "metrics");
    if (object.is_object() && object.at("step").is_integer()) return object;
  } catch (const Error&) {
    // Cut short by a kill; the lines before and after it are intact.
  }
  return std::nullopt;
}

/// Calls `visit(line, object)` for each intact line that ends in a newline.
template <class Visit>
void each_line(const std::string& bytes, Visit visit) {
  size_t at = 0;
  for (size_t end = bytes.find('\n'); end != std::string::npos; end = bytes.find('\n', at)) {
    const std::string_view line = std::string_view(bytes).substr(at, end - at);
    at = end + 1;
    if (const std::optional<Json> object = parsed(line)) visit(line, *object);
  }
}

std::string shortest(double value) { return std::isfinite(value) ? detail::number(value) : "null"; }

}  // namespace

MetricsLog::MetricsLog(const Path& lines, const Path& tensorboard) : path_(lines), tensorboard_(tensorboard) {
  io::truncate_after(path_, [](std::string_view) { return false; });
  lines_.emplace(path_);
}

void MetricsLog::log(int64_t step, const std::vector<Scalar>& numbers) {
  std::string line = text("{\"step\": ", step);
  for (const auto& [name, value] : numbers) line += text(", ", Json(name).dump(), ": ", shortest(value));
  lines_->line(line + "}");
  std::vector<Scalar> tagged = numbers;
  for (auto& [name, value] : tagged) {
    if (name == "learning_rate") name = "lr";  // its usual tag on boards
  }
  tensorboard_.write(step, tagged);
}

void MetricsLog::truncate_to(int64_t step, int64_t validated) {
  lines_.reset();
  io::check_regular(path_);  // reading a pipe would never end
  if (io::exists(path_)) {
    const std::string bytes = io::read(path_);
    std::string kept;
    each_line(bytes, [&](std::string_view line, const Json& object) {
      const auto is_score = [](const JsonMember& one) { return one.key.starts_with(score_prefix); };
      const bool scores = std::any_of(object.members().begin(), object.members().end(), is_score);
      if (object.at("step").integer() <= (scores ? std::min(step, validated) : step))
        kept.append(line).append(1, '\n');
    });
    if (kept.size() != bytes.size()) io::write_own(path_, kept);
  }
  lines_.emplace(path_);
  tensorboard_.truncate_to(step, validated);
}

void MetricsLog::sync() {
  lines_->sync();
  tensorboard_.sync();
}

std::vector<MetricSeries> read_metrics(const Path& lines) {
  std::vector<MetricSeries> all;
  if (!io::exists(lines)) return all;
  std::map<std::string, size_t> places;
  each_line(io::read(lines), [&](std::string_view, const Json& object) {
    const int64_t step = object.at("step").integer();
    for (const auto& [name, value] : object.members()) {
      if (name == "step" || !(value.is_number() || value.is_null())) continue;
      const std::string now(metric_now(name));
      const auto [place, fresh] = places.try_emplace(now, all.size());
      if (fresh) all.push_back({.name = now, .steps = {}, .values = {}});
      MetricSeries& series = all[place->second];
      series.steps.push_back(step);
      series.values.push_back(value.real());
    }
  });
  return all;
}

void write_metrics_csv(const Path& lines, const Path& table) {
  const std::vector<MetricSeries> all = read_metrics(lines);
  std::map<int64_t, std::vector<std::string>> rows;
  std::string out = "step";
  for (size_t column = 0; column < all.size(); ++column) {
    out += text(",", csv_name(all[column].name));
    for (size_t i = 0; i < all[column].steps.size(); ++i) {
      std::vector<std::string>& row = rows[all[column].steps[i]];
      row.resize(all.size());
      row[column] = std::isfinite(all[column].values[i]) ? detail::number(all[column].values[i]) : "";
    }
  }
  out += '\n';
  for (const auto& [step, row] : rows) {
    out += std::to_string(step);
    for (const std::string& value : row) out += text(",", value);
    out += '\n';
  }
  io::write_own(table, out);
}

}  // namespace heed
