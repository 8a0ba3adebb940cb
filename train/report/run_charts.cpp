// Which series of metrics.jsonl are drawn together.
#include "heed/train/report/run_charts.h"

#include "heed/core/io/ascii.h"
#include "heed/train/metrics/score_name.h"
#include "heed/train/run/tensorboard.h"

namespace heed {
namespace {

/// "Accuracy" for accuracy.
std::string title_of(const std::string& score) {
  std::string title = score_name(score);
  if (!title.empty()) title[0] = ascii_upper(title[0]);
  return title;
}

}  // namespace

Chart chart_of(const std::vector<MetricSeries>& logged, const std::string& title,
               const std::vector<std::pair<std::string, std::string>>& names, double mark) {
  Chart chart;
  chart.title = title;
  chart.last_values = true;
  chart.mark = mark;
  for (const auto& [key, label] : names) {
    for (const MetricSeries& one : logged) {
      if (one.name != key) continue;
      Series series{.name = label};
      series.x.assign(one.steps.begin(), one.steps.end());
      series.y = one.values;
      chart.series.push_back(std::move(series));
    }
  }
  return chart;
}

std::vector<Chart> score_charts(const std::vector<MetricSeries>& logged, double mark) {
  std::vector<Chart> charts;
  for (const MetricSeries& one : logged) {
    if (!one.name.starts_with(score_prefix)) continue;
    const std::string score = one.name.substr(score_prefix.size());
    if (score == "loss" || score == "estimate") continue;
    charts.push_back(chart_of(logged, title_of(score), {{one.name, "validation"}}, mark));
    charts.back().max_y = max_score(score);
  }
  return charts;
}

}  // namespace heed
