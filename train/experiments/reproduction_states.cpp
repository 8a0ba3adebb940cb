// Draws the score of models over the numbers that they keep while they decode.
#include <algorithm>
#include <cmath>
#include <optional>

#include "heed/attention/spec.h"
#include "heed/attention/state_size.h"
#include "heed/train/config/config.h"
#include "heed/train/experiments/reproduction_parts.h"
#include "heed/train/metrics/score_name.h"
#include "heed/train/report/chart.h"

namespace heed {
namespace {

constexpr int64_t max_state_length = 512;  // a map of that length is small, whatever the attention

int64_t state_length(const Config& config) { return std::min(config.model.max_length, max_state_length); }

/// The numbers that all heads and layers of a cell's model keep after state_length() tokens; nothing where
/// its attention does not decode token by token.
std::optional<double> numbers_kept(const PageInput& input, const PlannedCell& planned) {
  const Config config =
      planned.trainings().empty() ? recipe_of(planned) : config_of(planned, input.options, 0);
  AttentionConfig attention = config.model.attention_config();
  attention.layers = std::max<int64_t>(config.model.layers, 1);
  const auto in_a_head =
      state_size(planned.row->attention_on(*planned.column), attention, state_length(config));
  if (!in_a_head) return {};
  return *in_a_head * static_cast<double>(attention.heads * attention.layers);
}

}  // namespace

std::string draw_states(const PageInput& input, const PublishedColumn& column) {
  const std::string score = curve_score(input.table);
  std::map<std::string, std::map<double, double>> best_scores;  // by attention, then by numbers kept
  int64_t length = 0;
  for (const PlannedCell* planned : input.in_column(column)) {
    const double value = mean_score(input, *planned, score);
    if (!std::isfinite(value)) continue;
    const std::optional<double> kept = numbers_kept(input, *planned);
    if (!kept) continue;
    length = state_length(recipe_of(*planned));
    const std::string name = parse_spec(planned->row->attention_on(column)).name;
    double& best = best_scores[name].emplace(*kept, value).first->second;
    best = std::max(best, value);  // the paper draws the best of models that keep as many
  }
  if (best_scores.empty()) return "";
  Chart chart{.title = text(column.name, ": ", score, " over what a model keeps"),
              .x_label = text("numbers after ", length, " tokens"),
              .logarithmic_x = true,
              .max_y = max_score(score)};
  for (const auto& [name, scores] : best_scores) {
    chart.series.push_back({.name = name});
    for (const auto& [kept, value] : scores) {
      chart.series.back().x.push_back(kept);
      chart.series.back().y.push_back(value);
    }
  }
  return input.put_picture(column.name, "-states.svg", chart.title, chart_svg(chart));
}

}  // namespace heed
