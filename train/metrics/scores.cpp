// Finds and compares scores.
#include "heed/train/metrics/scores.h"

#include <algorithm>
#include <cmath>

namespace heed {

std::optional<double> Scores::find(const std::string& name) const {
  const auto found =
      std::find_if(list.begin(), list.end(), [&](const auto& one) { return one.first == name; });
  return found == list.end() ? std::nullopt : std::optional(found->second);
}

bool Scores::better_than(const Scores& other) const {
  if (std::isnan(first()) || std::isnan(other.first())) return !std::isnan(first());
  if (first() == other.first()) return find("loss").value_or(NAN) < other.find("loss").value_or(NAN);
  return lower_is_better ? first() < other.first() : first() > other.first();
}

}  // namespace heed
