// Settings against presets.
#include "train/choices.h"

#include <algorithm>

#include "train/lra_presets.h"
#include "train/task.h"

namespace heed {
namespace {

const LraRecipe* recipe_of(const Config& config) {
  for (const LraRecipe& one : lra_recipes()) {
    if (preset_of(one) == config.preset) return &one;
  }
  return nullptr;
}

bool has_recipes(const Config& config) {
  const auto all = lra_recipes();
  return std::any_of(all.begin(), all.end(),
                     [&](const LraRecipe& one) { return config.task_name == one.task; });
}

const OptionText* find(const std::vector<OptionText>& options, const std::string& key) {
  const auto found =
      std::find_if(options.begin(), options.end(), [&](const OptionText& one) { return one.name == key; });
  return found == options.end() ? nullptr : &*found;
}

std::string or_none(const std::string& value) { return value.empty() ? "none" : value; }

}  // namespace

std::vector<ChangedSetting> changed_settings(Config& config) {
  const auto all = presets();
  if (std::none_of(all.begin(), all.end(), [&](const Preset& one) { return config.preset == one.name; }))
    return {};
  Config preset = preset_config(config.preset);
  const std::vector<OptionText> plain = options_of(preset);
  std::vector<ChangedSetting> out;
  for (const OptionText& option : options_of(config)) {
    const OptionText* before = find(plain, option.name);
    if (before != nullptr && before->value != option.value)
      out.push_back({option.name, option.value, before->value});
  }
  return out;
}

std::string changed_words(Config& config) {
  const char* of = recipe_of(config) != nullptr ? "recipe" : "preset";
  std::string out;
  for (const auto& [key, value, preset] : changed_settings(config))
    out += text(out.empty() ? "" : ", ", key, " ", or_none(value), " (", of, ": ", or_none(preset), ")");
  return out;
}

Json settings_facts(Config& config) {
  Json facts = Json::object();
  if (!config.preset.empty()) facts.set("preset", config.preset);
  if (const LraRecipe* recipe = recipe_of(config)) facts.set("recipe", recipe->name);
  if (has_recipes(config)) {
    const std::vector<OptionText> options = options_of(config);
    Json choices = Json::object();
    for (const char* key : lra_choices()) {
      if (const OptionText* option = find(options, key)) choices.set(key, option->value);
    }
    facts.set("choices", std::move(choices));
  }
  if (!config.preset.empty()) {
    Json changed = Json::object();
    for (const auto& [key, value, preset] : changed_settings(config))
      changed.set(key, Json::object({{"value", value}, {"preset", preset}}));
    facts.set("changed", std::move(changed));
  }
  return facts;
}

}  // namespace heed
