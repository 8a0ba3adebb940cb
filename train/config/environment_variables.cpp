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

std::string variable_of(const std::string& key) {
  std::string variable = "HEED_" + key;
  for (char& c : variable) c = c == '.' ? '_' : ascii_upper(c);
  return variable;
}

/// The variables of the settings of every task: one that this task does not have may be meant for another
/// command.
std::vector<std::string> every_variable() {
  std::set<std::string> all;
  for (const TaskEntry& entry : tasks()) {
    Config config;
    config.task = entry.make();
    for (const OptionText& option : options_of(config)) all.insert(variable_of(option.name));
  }
  return {all.begin(), all.end()};
}

/// A misspelt name would be ignored without notice. Variables of other kinds, such as HEED_DATA, have no
/// group.
void refuse_unknown(const Config& config, const std::vector<OptionText>& options) {
  std::set<std::string> known, groups;
  for (const OptionText& option : options) {
    known.insert(variable_of(option.name));
    groups.insert(variable_of(option.name.substr(0, option.name.find('.') + 1)));
  }
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    const std::string_view whole = *at;
    const std::string name(whole.substr(0, whole.find('=')));
    const size_t end = name.find('_', 5);  // behind HEED_
    if (!name.starts_with("HEED_") || end == std::string::npos || known.contains(name)) continue;
    if (!groups.contains(name.substr(0, end + 1))) continue;
    for (const RenamedSetting& one : renamed_settings()) {
      if (name == variable_of(std::string(one.old_key)))
        fail("the variable ", name, " is called ", variable_of(std::string(one.key)), " now.");
    }
    const std::vector<std::string> all = every_variable();
    if (std::find(all.begin(), all.end(), name) != all.end()) continue;
    const std::string near = nearest(name, all);
    fail("the variable ", shown(std::string(whole)), " is no setting of any task.",
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
  const std::vector<std::string> settings = every_variable();  // ascending
  std::vector<char*> out;
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    const std::string_view entry = *at;
    if (!std::binary_search(settings.begin(), settings.end(), entry.substr(0, entry.find('='))))
      out.push_back(*at);
  }
  out.push_back(nullptr);
  return out;
}

}  // namespace heed
