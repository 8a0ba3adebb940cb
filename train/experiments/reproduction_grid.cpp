// The grid of settings of a table: the best point of each cell by validation.
#include <algorithm>

#include "heed/train/experiments/comparison_sweep.h"
#include "heed/train/experiments/reproduction_parts.h"

namespace heed {

void take_best_point(PlannedCell& planned, const EndedRuns& ended) {
  std::vector<ComparedRun> runs;
  for (const PlannedRun& plan : planned.trials) {
    const auto run = ended.find(plan.name);
    if (run == ended.end()) return;
    runs.push_back(run->second);
  }
  try {
    choose_points(runs);
  } catch (const Error& error) {
    return mark_failed(planned, error);
  }
  planned.plans.clear();
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].chosen) planned.plans.push_back(planned.trials[i]);
  }
}

std::string ended_points_text(const PublishedTable& table, const PlannedCell& planned,
                              const EndedRuns& ended) {
  const auto num_ended = std::ranges::count_if(table.points, [&](const GridPoint& point) {
    return std::ranges::all_of(planned.trials, [&](const PlannedRun& plan) {
      return plan.point != point || ended.contains(plan.name);
    });
  });
  return text(num_ended, " of ", table.points.size(), " settings have ended");
}

std::string best_point_text(const PublishedTable& table, const PlannedCell& planned, const EndedRuns& ended,
                            const std::vector<const ComparedRun*>& runs) {
  if (table.grid.empty()) return "";
  std::vector<GridPoint> points;  // runs on file may have others than those of this call
  for (const ComparedRun* run : runs) {
    if (std::ranges::count(points, run->point) == 0) points.push_back(run->point);
  }
  std::string words = text(picture::joined(points, " and ", point_text), " is the best of ",
                           table.points.size(), " settings by validation");
  for (const GridPoint& point : points) {
    for (const auto& [name, value] : settings_at_edge(point, table.points))
      words += text(", and ", name, "=", value, " is at the edge of the grid: a wider one may have a better");
  }
  for (const PlannedRun& plan : planned.trials) {
    const auto run = ended.find(plan.name);
    if (run != ended.end() && !run->second.failure.empty())
      picture::append_part(words, text(point_text(plan.point), " failed: ", run->second.failure));
  }
  return words;
}

}  // namespace heed
