// What errors call the settings of training.
#include "heed/train/config/setting_name.h"

#include <set>

#include "heed/core/settings_in_errors.h"
#include "heed/tests/catch.h"
#include "heed/train/config/config.h"

using namespace heed;

TEST_CASE("setting name: fit() names every setting that it has") {
  // What fit() does not have: its loader counts examples, its loss smooths, and it does not pre-train.
  std::set<std::string> others{"batch_tokens",   "label_smoothing",     "pretrain",   "pretrain_steps",
                               "pretrain_rate",  "checkpoint_every",    "best_after", "skip_limit",
                               "detect_anomaly", "validate_each_epoch", "maps_every", "maps_of",
                               "maps_keep"};  // maps: MapSnapshotCallback
  TrainOptions options;
  std::set<std::string> names;
  for (const OptionText& option : options_of(options)) {
    const std::string key = "train." + option.name;
    CHECK(setting_name(key) == key);
    const SettingsSourceScope fit(SettingsSource::fit);
    const std::string name = setting_name(key);
    CAPTURE(key, name);
    if (others.erase(option.name) == 1)
      CHECK(name == key);
    else
      CHECK((name.find("FitOptions::") == 0 || name.find("DataLoaderOptions::") == 0));
    CHECK(names.insert(name).second);
  }
  CHECK(others.empty());
  const SettingsSourceScope fit(SettingsSource::fit);
  CHECK(setting_name("train.max_steps") == "FitOptions::steps");
  CHECK(setting_name("train.learning_rate") == "FitOptions::schedule.learning_rate");
  CHECK(setting_name("model.d_model") == "model.d_model");
}

TEST_CASE("setting name: a value to try is an option or a member") {
  const auto said = [] { return setting_advice("train.batch_size", "--batch-size", 8, 16); };
  CHECK(said() == "train.batch_size = 8 (now 16)");
  {
    const SettingsSourceScope program(SettingsSource::command_line);
    CHECK(said() == "--batch-size 8 (train.batch_size, now 16)");
  }
  const SettingsSourceScope fit(SettingsSource::fit);
  CHECK(said() == "DataLoaderOptions::batch_size = 8 (now 16)");
}
