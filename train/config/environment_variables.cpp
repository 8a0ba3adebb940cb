// Reads settings from environment variables.
#include "heed/train/config/environment_variables.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string_view>

#include "heed/core/io/ascii.h"
#include "heed/nn/set_option.h"
#include "heed/train/run/renamed_settings.h"
#include "heed/train/tasks/registry.h"

namespace heed {
namespace {

/// The variable of a setting: HEED_TRAIN_LEARNING_RATE of train.learning_rate.
std::string variable_of(const std::string& key) {
  std::string variable = "HEED_" + key;
  for (char& c : variable) c = c == '.' ? '_' : ascii_upper(c);
  return variable;
}

/// The variables of the settings of all tasks, ascending. A variable of another task is no error: it may be
/// meant for another command.
std::vector<std::string> every_variable() {
  std::set<std::string> all;
  for (const TaskEntry& entry : tasks()) {
    Config config;
    config.task = entry.make();
    for (const OptionText& option : options_of(config)) all.insert(variable_of(option.name));
  }
  return {all.begin(), all.end()};
}

/// Fails for a variable that begins with a group's name and is no setting: a misspelt name would be ignored
/// without notice. Variables that are no settings, such as HEED_DATA, begin with no group.
void refuse_unknown(const Config& config, const std::vector<OptionText>& options) {
  std::set<std::string> known, groups;
  for (const OptionText& option : options) {
    known.insert(variable_of(option.name));
    groups.insert(variable_of(option.name.substr(0, option.name.find('.') + 1)));
  }
  constexpr std::string_view prefix = "HEED_";
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view assignment = *entry;
    const std::string name(assignment.substr(0, assignment.find('=')));
    const size_t end = name.find('_', prefix.size());  // end of the group
    if (!name.starts_with(prefix) || end == std::string::npos || known.contains(name)) continue;
    if (!groups.contains(name.substr(0, end + 1))) continue;
    for (const RenamedSetting& renamed : renamed_settings()) {
      if (name == variable_of(std::string(renamed.old_key)))
        fail("the variable ", name, " is called ", variable_of(std::string(renamed.key)), " now.");
    }
    const std::vector<std::string> all = every_variable();
    if (std::ranges::count(all, name) > 0) continue;
    const std::string near = nearest(name, all);
    fail("the variable ", shown(std::string(assignment)), " is no setting of any task.",
         near.empty() ? "" : " Did you mean " + near + "?", " Unset it; heed show ",
         config.preset.empty() ? "PRESET" : config.preset, " lists the settings.");
  }
}

}  // namespace

void from_environment(Config& config) {
  const std::vector<OptionText> options = options_of(config);
  refuse_unknown(config, options);
  const auto length = [](const char* key) {
    const std::string variable = variable_of(key);
    const char* value = std::getenv(variable.c_str());
    return value != nullptr && std::string_view(value) != "0" ? variable + ": " : std::string();
  };
  replace_length(config, length("train.max_steps"), length("train.epochs"), SetBy::environment);
  for (const OptionText& option : options) {
    const std::string variable = variable_of(option.name);
    if (const char* value = std::getenv(variable.c_str()))
      config.set(option.name, value, variable + ": ", SetBy::environment);
  }
}

std::vector<char*> environment_without_settings() {
  const std::vector<std::string> settings = every_variable();
  std::vector<char*> out;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view assignment = *entry;
    if (!std::ranges::binary_search(settings, assignment.substr(0, assignment.find('='))))
      out.push_back(*entry);
  }
  out.push_back(nullptr);
  return out;
}

}  // namespace heed
