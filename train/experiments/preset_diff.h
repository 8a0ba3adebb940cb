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

/// "train.batch_size 2 (recipe: 256)"; `of` names what has the other value.
std::string to_string(const ReportSetting& setting, const char* of);

/// The changed settings in the order of config.toml, whoever changed them. Empty when the run has no preset
/// or the preset no longer exists.
std::vector<ReportSetting> changed_settings(Config& config);

/// "data.pixel_zero token (recipe: pad), train.batch_size 2 (recipe: 256)"; empty when nothing changed.
std::string changed_words(Config& config);

/// For a page: what was changed in the run's preset (in its task's defaults where it has none), and all.
ReportSettings settings_of(Config& config);

/// For the manifest: `preset`; `recipe` and `choices` (the keys that differ between recipes) for tasks with
/// recipes; and `changed`, with the run's and the preset's values.
Json settings_facts(Config& config);

}  // namespace heed
