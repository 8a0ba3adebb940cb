// Differences between a run's settings and its preset's.
#pragma once

#include <string>
#include <vector>

#include "heed/core/io/json.h"
#include "heed/train/config/config.h"
#include "heed/train/report/report.h"

namespace heed {

/// The settings of `config` that have another value in `from`, in the order of config.toml.
std::vector<ReportSetting> different_settings(Config& config, Config& from);

/// A changed setting as text: "train.batch_size 2 (recipe: 256)"; `of` is the word for the other config.
std::string to_string(const ReportSetting& setting, const char* of);

/// The settings that differ from the config's preset, in the order of config.toml. Empty without a preset, or
/// with one that no longer exists.
std::vector<ReportSetting> changed_settings(Config& config);

/// The changed settings as text: "data.pixel_zero token (recipe: pad), train.batch_size 2 (recipe: 256)".
std::string changed_words(Config& config);

/// All settings for a page, and those that differ from the preset (without one: from the task's defaults).
ReportSettings settings_of(Config& config);

/// For the manifest: `preset`; `recipe` and `choices` (the keys that differ between recipes) for tasks with
/// recipes; and `changed`, with the run's and the preset's values.
Json settings_facts(Config& config);

}  // namespace heed
