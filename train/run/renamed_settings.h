// Settings that had another name in heed 0.1: one table for files, --set, options, variables and old runs.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace heed {

/// The name of a setting in heed 0.1 and its present name.
struct RenamedSetting {
  std::string_view old_key;  ///< dotted: "train.rate"
  std::string_view key;      ///< dotted: "train.learning_rate"
};

/// Every setting whose key has changed.
std::span<const RenamedSetting> renamed_settings();

/// The present key of a setting of heed 0.1, such as "train.learning_rate" for "train.rate". The old key may
/// lack its group ("rate"). Empty for a key that has not changed or never existed.
std::string_view key_now(std::string_view old_key);

/// The present option for one of heed 0.1, both without the leading dashes: "lr" for "rate", "checkpoint" for
/// "ckpt", "train.learning_rate" for "train.rate". Empty for an option that has not changed or never existed.
std::string option_now(std::string_view old_option);

/// The present name of a series in the metrics.jsonl of heed 0.1: `name` where it has not changed.
std::string_view metric_now(std::string_view name);

}  // namespace heed
