// Display names and bounds of scores.
#include "heed/train/metrics/score_name.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

namespace heed {

std::string score_name(const std::string& key) {
  if (key.starts_with("valid_")) return "validation " + score_name(key.substr(6));
  if (key.starts_with("last_")) return score_name(key.substr(5)) + " of the last step";
  constexpr std::pair<std::string_view, std::string_view> abbreviations[] = {
      {"bleu", "BLEU"}, {"chrf", "chrF"}, {"wer", "WER"}, {"cer", "CER"}};
  for (const auto& [short_key, name] : abbreviations) {
    if (key == short_key) return std::string(name);
  }
  std::string out = key;
  std::replace(out.begin(), out.end(), '_', ' ');
  return out;
}

double max_score(const std::string& key) {
  if (key.starts_with("valid_")) return max_score(key.substr(6));
  if (key.starts_with("last_")) return max_score(key.substr(5));
  return key == "accuracy" ? 1 : key == "bleu" ? 100 : std::numeric_limits<double>::infinity();
}

}  // namespace heed
