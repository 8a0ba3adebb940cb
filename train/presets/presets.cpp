// Named presets: the files of train/presets, which are inside the program.
#include <toml++/toml.h>
#include <algorithm>
#include <deque>
#include <tuple>
#include <utility>
#include <vector>

#include "heed/core/io/embedded_files.h"
#include "heed/train/config/config.h"
#include "heed/train/program.h"
#include "heed/train/run/program_name.h"
#include "heed/train/tasks/registry.h"
#include "heed/train/tasks/task.h"

namespace heed {
namespace {

constexpr std::string_view folder = "train/presets/", defaults = "train/presets/recipe_defaults/",
                           ending = ".toml";

Preset read_preset(const EmbeddedFile& file) {
  const toml::table table = toml::parse(file.text, file.path);
  const auto value = [&](const char* key) { return table[key].value_or(std::string()); };
  std::string name(file.path.substr(folder.size(), file.path.size() - folder.size() - ending.size()));
  std::replace(name.begin(), name.end(), '/', '-');
  return {name, value("task"), value("about"), value("recipe"), file.text};
}

/// The place of a task in the list of tasks.
ptrdiff_t task_index(const std::string& name) {
  const auto all = tasks();
  return std::find_if(all.begin(), all.end(), [&](const TaskEntry& one) { return name == one.name; }) -
         all.begin();
}

/// Those of the program, in the order of the list; register_preset() adds behind them.
std::vector<Preset>& all_presets() {
  static std::vector<Preset> all = [] {
    std::vector<Preset> list;
    for (const EmbeddedFile& file : embedded_files()) {
      if (file.path.starts_with(folder) && !file.path.starts_with(defaults))
        list.push_back(read_preset(file));
    }
    const auto place = [](const Preset& one) { return std::tuple(task_index(one.task), one.name); };
    std::sort(list.begin(), list.end(),
              [&](const Preset& a, const Preset& b) { return place(a) < place(b); });
    return list;
  }();
  return all;
}

}  // namespace

std::span<const Preset> presets() { return all_presets(); }

void register_preset(const std::string& name, const std::string& toml) {
  static std::deque<std::string> texts;  // presets hold views of them
  std::vector<std::string> taken;
  for (const Preset& one : presets()) taken.push_back(one.name);
  check_registration("register_preset", name.c_str(), "", taken);
  // Reads it as training will, so that a mistake shows here; it is not in the list yet, so it cannot name
  // itself.
  const Config config = parse_config(toml, "preset " + name);
  const toml::table table = toml::parse(toml, name);
  const auto value = [&](const char* key) { return table[key].value_or(std::string()); };
  all_presets().push_back(
      {name, config.task_name, value("about"), value("recipe"), texts.emplace_back(toml)});
}

std::string with_recipe(const std::string& preset, const std::string& recipe) {
  std::vector<std::string> known;
  for (const Preset& one : presets()) {
    if (one.recipe.empty() || (one.name != preset && one.task != preset)) continue;
    if (one.recipe == recipe) return one.name;
    known.push_back(one.recipe);
  }
  if (known.empty()) {
    fail("--recipe ", shown(recipe), ": the preset ", shown(preset),
         " has no recipes; those of the Long Range Arena have, such as lra-listops.");
  }
  fail("--recipe ", shown(recipe), " is unknown.", suggestion(recipe, known));
}

}  // namespace heed
