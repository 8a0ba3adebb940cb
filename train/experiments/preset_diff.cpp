// Compares settings with presets.
#include "heed/train/experiments/preset_diff.h"

#include <algorithm>

#include "heed/attention/inspect/text_escapes.h"
#include "heed/train/config/config.h"
#include "heed/train/tasks/registry.h"
#include "heed/train/tasks/task.h"

namespace heed {
namespace {

// Settings on which recipes of one task disagree, and which decide what a result means: treatment of zero
// pixels, positions, pooling, lengths, choice of the checkpoint, optimizer. No task has all of them.
constexpr const char* disputed_settings[] = {
    "data.pixel_zero",      "model.position",      "model.pool",           "data.mean_over",
    "model.pair_head",      "data.max_length",     "data.whole_batches",   "train.best_after",
    "train.cycle_momentum", "train.decay_vectors", "train.grad_clip_value"};

/// The preset that a config began from; null: none, or one that this version does not have.
const Preset* preset_of(const Config& config) {
  for (const Preset& preset : presets()) {
    if (config.preset == preset.name) return &preset;
  }
  return nullptr;
}

bool follows_recipe(const Config& config) {
  const Preset* preset = preset_of(config);
  return preset != nullptr && !preset->recipe.empty();
}

/// True if a preset of the config's task is the recipe of a paper.
bool has_recipes(const Config& config) {
  return std::ranges::any_of(presets(), [&](const Preset& preset) {
    return config.task_name == preset.task && !preset.recipe.empty();
  });
}

/// The option of this name; null: none.
const OptionText* find(const std::vector<OptionText>& options, const std::string& key) {
  const auto found = std::ranges::find(options, key, &OptionText::name);
  return found == options.end() ? nullptr : &*found;
}

}  // namespace

std::vector<ReportSetting> different_settings(Config& config, Config& from) {
  const std::vector<OptionText> options_before = options_of(from);
  std::vector<ReportSetting> out;
  for (const OptionText& option : options_of(config)) {
    const OptionText* before = find(options_before, option.name);
    if (before != nullptr && before->value != option.value)
      out.push_back({.key = option.name, .value = option.value, .before = before->value});
  }
  return out;
}

std::string to_string(const ReportSetting& setting, const char* of) {
  const auto or_none = [](const std::string& value) { return value.empty() ? "none" : value; };
  return text(setting.key, " ", or_none(setting.value), " (", of, ": ", or_none(setting.before), ")");
}

std::vector<ReportSetting> changed_settings(Config& config) {
  if (preset_of(config) == nullptr) return {};
  Config preset = preset_config(config.preset);
  return different_settings(config, preset);
}

std::string changed_words(Config& config) {
  const char* of = follows_recipe(config) ? "recipe" : "preset";
  return picture::joined(changed_settings(config), ", ",
                         [&](const ReportSetting& one) { return to_string(one, of); });
}

ReportSettings settings_of(Config& config) {
  const bool has_preset = preset_of(config) != nullptr;
  Config before;
  if (has_preset)
    before = preset_config(config.preset);
  else
    before.task = make_task(config.task_name);
  return {.from = has_preset ? "preset " + config.preset : "defaults of " + config.task_name,
          .changed = different_settings(config, before),
          .all = to_toml(config)};
}

Json settings_facts(Config& config) {
  Json metadata = Json::object();
  if (!config.preset.empty()) metadata.set("preset", config.preset);
  if (follows_recipe(config)) metadata.set("recipe", preset_of(config)->recipe);
  if (has_recipes(config)) {
    const std::vector<OptionText> options = options_of(config);
    Json chosen = Json::object();
    for (const char* key : disputed_settings) {
      if (const OptionText* option = find(options, key)) chosen.set(key, option->value);
    }
    metadata.set("choices", std::move(chosen));
  }
  if (!config.preset.empty()) {
    Json changed = Json::object();
    for (const auto& [key, value, preset] : changed_settings(config))
      changed.set(key, Json::object({{"value", value}, {"preset", preset}}));
    metadata.set("changed", std::move(changed));
  }
  return metadata;
}

}  // namespace heed
