// Keys of files become words.
#include "train/score_name.h"

#include <algorithm>

namespace heed {

std::string score_name(const std::string& key) {
  if (key.starts_with("valid_")) return "validation " + score_name(key.substr(6));
  if (key.starts_with("last_")) return score_name(key.substr(5)) + " of the last step";
  std::string out = key;
  std::replace(out.begin(), out.end(), '_', ' ');
  return out;
}

}  // namespace heed
