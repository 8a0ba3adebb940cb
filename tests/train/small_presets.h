// Presets reduced to test size.
#pragma once

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "heed/nn/set_option.h"
#include "heed/train/config/config.h"

namespace heed {

/// The key without its task, "lm:data.num_examples", where `task` begins with that; else no key at all.
inline std::string key_for(const std::string& task, const std::string& key) {
  const size_t colon = key.find(':');
  if (colon == std::string::npos) return key;
  return task.starts_with(key.substr(0, colon)) ? key.substr(colon + 1) : std::string();
}

/// Upper bounds of a small preset's numbers. Skips keys that a task does not have, and numbers that are 0
/// ("off" or "all").
using Caps = std::vector<std::pair<std::string, int64_t>>;

/// A preset reduced in size and otherwise unchanged, for `steps` steps. `wider` comes last and overrides.
inline Config small_preset(const std::string& name, int64_t steps = 2, const Caps& wider = {}) {
  Caps caps{{"translate:data.num_examples", 200},
            {"lm:data.num_examples", 3000},
            {"mlm:data.num_examples", 3000},
            {"mnist:data.num_examples", 60},
            {"lra:data.num_examples", 40},
            {"data.test_size", 20},
            {"translate:data.test_size", 6},
            {"data.validation", 6},
            {"data.bleu_pairs", 2},
            {"data.vocabulary", 300},
            {"data.fixed_length", 32},
            {"model.d_model", 16},
            {"model.heads", 4},
            {"model.layers", 2},
            {"model.max_length", 64},
            {"model.d_ff", 16},
            {"train.batch_size", 4},
            {"train.batch_tokens", 100},
            {"data.eval_batches", 2},
            {"data.side", 4},
            {"mqar:data.length", 32},
            {"mqar:data.kv_pairs", 4},
            {"mad:data.length", 32},
            {"mad-copy:data.copied", 4},
            {"induction:data.length", 32},
            {"induction:data.longest_test", 64},
            {"data.up_to", 700},
            {"data.shortest", 600}};
  caps.insert(caps.end(), wider.begin(), wider.end());
  Config config = make_config(name);
  const std::vector<OptionText> options = options_of(config);
  for (const auto& [key, cap] : caps) {
    for (const OptionText& option : options) {
      int64_t value = 0;
      if (option.name != key_for(config.task_name, key)) continue;
      std::from_chars(option.value.data(), option.value.data() + option.value.size(), value);
      if (value > 0) config.set(option.name, std::to_string(std::min(value, cap)), "");
    }
  }
  config.set("train.epochs", "0", "");
  config.set("train.max_steps", std::to_string(steps), "");
  config.check();
  return config;
}

}  // namespace heed
