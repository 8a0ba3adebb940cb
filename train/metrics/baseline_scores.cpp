// Baselines of scores as text and JSON.
#include "heed/train/metrics/baseline_scores.h"

#include "heed/attention/inspect/text_escapes.h"

namespace heed {

std::vector<std::string> baseline_words(const Task& task, const std::string& score) {
  std::vector<std::string> out;
  for (const ScoreBaseline& one : task.baselines()) {
    if (one.score == score) out.push_back(one.baseline + " " + picture::fixed(one.value, 3));
  }
  return out;
}

void put_known(Json& into, const Task& task) {
  Json baselines = Json::object();
  for (const ScoreBaseline& one : task.baselines()) {
    const Json* before = baselines.find(one.score);
    Json beside = before != nullptr ? *before : Json::object();
    beside.set(one.baseline, one.value);
    baselines.set(one.score, std::move(beside));
  }
  if (!baselines.members().empty()) into.set("baselines", std::move(baselines));
}

}  // namespace heed
