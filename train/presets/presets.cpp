// Named presets: the files of train/presets, which are inside the program.
#include <toml++/toml.h>
#include <algorithm>
#include <tuple>
#include <vector>

#include "heed/core/io/embedded_files.h"
#include "heed/train/config/config.h"
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

}  // namespace

std::span<const Preset> presets() {
  static const std::vector<Preset> all = [] {
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
