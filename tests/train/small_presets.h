// Presets made small enough for a test, whatever presets there are.
#pragma once

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "attention/spec.h"
#include "train/config.h"

namespace heed {

/// What a number of a small preset is at most. A key that a task does not have, and a number that is 0
/// (which says "not this way" or "all of it"), are passed over.
using Caps = std::vector<std::pair<std::string, int64_t>>;

/// A preset with little of everything and otherwise as it is, for `steps` steps. `wider` comes last and wins.
inline Config small_preset(const std::string& name, int64_t steps = 2, const Caps& wider = {}) {
  Caps caps{{"data.pairs", 200},       {"data.characters", 3000},
            {"data.images", 60},       {"data.held_out", 20},
            {"data.validation", 6},    {"data.test", 6},
            {"data.bleu_pairs", 2},    {"data.vocabulary", 300},
            {"data.fixed_length", 32}, {"model.width", 16},
            {"model.heads", 4},        {"model.layers", 2},
            {"model.max_length", 64},  {"model.feed_forward", 16},
            {"train.batch", 4},        {"train.batch_tokens", 100},
            {"data.estimate", 2},      {"data.examples", 40},
            {"data.side", 4},          {"data.up_to", 700},
            {"data.shortest", 600}};
  caps.insert(caps.end(), wider.begin(), wider.end());
  Config config = make_config(name);
  const std::vector<OptionText> options = options_of(config);
  for (const auto& [key, cap] : caps) {
    for (const OptionText& option : options) {
      int64_t value = 0;
      if (option.name != key) continue;
      std::from_chars(option.value.data(), option.value.data() + option.value.size(), value);
      if (value > 0) config.set(key, std::to_string(std::min(value, cap)), "");
    }
  }
  config.set("train.epochs", "0", "");
  config.set("train.steps", std::to_string(steps), "");
  config.check();
  return config;
}

}  // namespace heed
