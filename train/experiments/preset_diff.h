// What a run's settings are beside those of its preset: a result means something together with both.
#pragma once

#include <string>
#include <vector>

#include "core/json.h"
#include "train/config.h"

namespace heed {

/// A setting that is not what the preset says.
struct ChangedSetting {
  std::string key, value, preset;
};

/// In the order of config.toml. Whoever changed them, value is compared with value. None where the run has no
/// preset, or one that there no longer is.
std::vector<ChangedSetting> changed_settings(Config& config);

/// "data.pixel_zero token (recipe: pad), train.batch 2 (recipe: 256)"; empty where nothing was changed.
std::string changed_words(Config& config);

/// For the manifest: `preset`; where the task has recipes, `recipe` and `choices`, the keys that recipes
/// disagree on; and `changed`, with the value and the preset's.
Json settings_facts(Config& config);

}  // namespace heed
