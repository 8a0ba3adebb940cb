// Writes baselines of scores as text and JSON.
#include "heed/train/metrics/baseline_scores.h"

#include "heed/attention/inspect/text_escapes.h"

namespace heed {

std::vector<std::string> baseline_words(std::span<const ScoreBaseline> baselines, const std::string& score) {
  std::vector<std::string> out;
  for (const ScoreBaseline& one : baselines) {
    if (one.score == score) out.push_back(one.baseline + " " + picture::fixed(one.value, 3));
  }
  return out;
}

void set_baselines(Json& into, std::span<const ScoreBaseline> baselines) {
  Json by_score = Json::object();
  for (const ScoreBaseline& one : baselines) {
    const Json* before = by_score.find(one.score);
    Json of_score = before != nullptr ? *before : Json::object();
    by_score.set(one.score, of_score.set(one.baseline, one.value));
  }
  if (!by_score.members().empty()) into.set("baselines", std::move(by_score));
}

}  // namespace heed
