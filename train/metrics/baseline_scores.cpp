// Writes baselines of scores as text and JSON.
#include "heed/train/metrics/baseline_scores.h"

#include "heed/attention/inspect/text_escapes.h"

namespace heed {

std::vector<std::string> baseline_words(std::span<const ScoreBaseline> baselines, const std::string& score) {
  std::vector<std::string> out;
  for (const ScoreBaseline& baseline : baselines) {
    if (baseline.score == score) out.push_back(baseline.baseline + " " + picture::fixed(baseline.value, 3));
  }
  return out;
}

void set_baselines(Json& into, std::span<const ScoreBaseline> baselines) {
  Json by_score = Json::object();
  for (const ScoreBaseline& baseline : baselines) {
    const Json* known = by_score.find(baseline.score);
    Json of_score = known != nullptr ? *known : Json::object();
    by_score.set(baseline.score, of_score.set(baseline.baseline, baseline.value));
  }
  if (!by_score.members().empty()) into.set("baselines", std::move(by_score));
}

}  // namespace heed
