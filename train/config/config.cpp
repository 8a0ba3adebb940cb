// Sets, reads and writes configs: keys, TOML files, presets and recipes.
#include "heed/train/config/config.h"

#include <toml++/toml.h>
#include <algorithm>
#include <optional>
#include <utility>

#include "heed/core/io/embedded_files.h"
#include "heed/core/io/files.h"
#include "heed/core/io/number_text.h"
#include "heed/data/text/text.h"
#include "heed/train/config/environment_variables.h"
#include "heed/train/config/toml_check.h"
#include "heed/train/run/renamed_settings.h"
#include "heed/train/tasks/registry.h"

namespace heed {

Config::Config() = default;
Config::~Config() = default;
Config::Config(Config&&) noexcept = default;
Config& Config::operator=(Config&&) noexcept = default;

namespace {

/// The group "model": settings of all models, and those of the task's model.
struct ModelGroup {
  ModelOptions& model;
  Task& task;
  void fields(Fields& f) {
    model.fields(f);
    task.model_fields(f);
  }
};

}  // namespace

void Config::fields(Fields& f) {
  ModelGroup group{model, *task};
  f("model", group);
  f("attention", attention);
  f("data", *task);
  f("train", train);
  f("decode", decode);
}

namespace {

/// The text with each byte that is not UTF-8 as \xE9.
std::string with_bytes_shown(std::string_view value) {
  std::string out;
  for (size_t bad = invalid_utf8(value); bad != value.npos; bad = invalid_utf8(value)) {
    out += value.substr(0, bad);
    out += formatted("\\x%02X", static_cast<unsigned>(static_cast<unsigned char>(value[bad])));
    value.remove_prefix(bad + 1);
  }
  return out.append(value);
}

/// Fails for a value that is not UTF-8, since config.toml, manifest and report are.
void check_utf8(const std::string& key, const std::string& value, const std::string& where) {
  const size_t bad = invalid_utf8(value);
  if (bad == std::string::npos) return;
  fail(where, shown(key), " = '", shown(with_bytes_shown(value), 200), "' is not UTF-8 at its byte ", bad + 1,
       ". config.toml could not hold it. Give UTF-8 text; rename a file whose name is not (mv, convmv).");
}

/// Fails for data.path and data.stride in a task without them: options that all tasks share set these keys.
void check_task_has(const std::string& key, Task& task, const std::string& where) {
  if (key != "data.path" && key != "data.stride") return;
  if (std::ranges::count(options_of(task), key.substr(key.find('.') + 1), &OptionText::name) > 0) return;
  fail(where, "this task ",
       key == "data.path" ? "makes its own data and takes none (it has no data.path)."
                          : "has no data.stride, which language models have.",
       " Leave it out.");
}

}  // namespace

void Config::set(const std::string& key, const std::string& value, const std::string& where, SetBy by) {
  check_utf8(key, value, where);
  if (const std::string_view now = key_now(key); !now.empty())
    fail(where, key, " is called ", now, " now. Write ", now, " = ", shown(value), ".");
  check_task_has(key, *task, where);
  set_option(*this, key, value, where);
  origin[key] = {where, by};
}

std::unique_ptr<Module> new_model(const Config& config, Rng& rng) {
  std::unique_ptr<Module> model = config.task->model(config, rng);
  // Weights are drawn in f32, then converted: f64 starts from the same values.
  if (config.train.precision == Precision::f64) convert(*model, DType::f64);
  return model;
}

bool Config::is_on_command_line(const std::string& key) const {
  const auto found = origin.find(key);
  return found != origin.end() && found->second.by == SetBy::command_line;
}

void replace_length(Config& config, const std::string& steps, const std::string& epochs, SetBy by) {
  if (steps.empty() == epochs.empty()) return;
  if (epochs.empty() && config.train.epochs != 0) config.set("train.epochs", "0", steps, by);
  if (steps.empty() && config.train.max_steps != 0) config.set("train.max_steps", "0", epochs, by);
}

namespace {

/// The place of a value: "FILE:3:8: ".
std::string place_of(const toml::node& node, const std::string& name) {
  const toml::source_position& begin = node.source().begin;
  return text(name, ":", static_cast<int64_t>(begin.line), ":", static_cast<int64_t>(begin.column), ": ");
}

/// A TOML value as the text that Config::set() takes.
std::string value_text(const toml::node& node, const std::string& where, const std::string& key) {
  if (const auto* s = node.as_string()) return s->get();
  if (const auto* i = node.as_integer()) return std::to_string(i->get());
  if (const auto* d = node.as_floating_point()) return exact_number(d->get());
  if (const auto* b = node.as_boolean()) return b->get() ? "true" : "false";
  fail(where, key, " must be a number, a text in quotes, or true or false.");
}

/// Names of settings that a text may use: those of this version, or also old ones.
enum class Names { present, of_any_version };

/// The tables of [[train.groups]] as the text of the setting train.groups.
std::string groups_text(const toml::array& groups, const std::string& name) {
  std::string out;
  for (const toml::node& node : groups) {
    const toml::table* group = node.as_table();
    const toml::node* match = group == nullptr ? nullptr : group->get("match");
    if (match == nullptr || !match->is_string())
      fail(place_of(node, name),
           "a group of parameters begins with the names it is for: match = \"*.bias\".");
    out += (out.empty() ? "" : "; ") + match->as_string()->get() + ":";
    bool is_first = true;
    for (const auto& [key, value] : *group) {
      if (key.str() == "match") continue;
      const std::string option(key.str());
      out += (std::exchange(is_first, false) ? " " : ", ") + option + "=" +
             value_text(value, place_of(value, name), option);
    }
  }
  return out;
}

bool is_number(const std::string& kind) { return kind == "integer" || kind == "number"; }

/// Sets the settings of a table. `prefix` is the dotted name of the table, `name` that of the file.
void apply(Config& config, const toml::table& table, const std::string& prefix, const std::string& name,
           Names names = Names::present) {
  const std::vector<OptionText> options = options_of(config);
  for (const auto& [key, node] : table) {
    std::string path = prefix.empty() ? std::string(key.str()) : prefix + "." + std::string(key.str());
    const std::string where = place_of(node, name);
    if (const auto* inner = node.as_table()) {
      apply(config, *inner, path, name, names);
      continue;
    }
    if (const std::string_view now = key_now(path); names == Names::of_any_version && !now.empty())
      path = now;
    if (prefix.empty() && (path == "preset" || path == "task" || path == "recipe" || path == "about"))
      continue;
    const auto* groups = path == "train.groups" ? node.as_array() : nullptr;
    const std::string value = groups != nullptr ? groups_text(*groups, name) : value_text(node, where, path);
    const auto option = std::ranges::find(options, path, &OptionText::name);
    if (option != options.end() && node.is_string() && is_number(option->kind))
      fail(where, path, " = \"", shown(value), "\" is text; a number is needed. Write it without quotes.");
    config.set(path, value, where, SetBy::file);
  }
}

/// The text with each letter beyond ASCII as '@', which TOML allows only in strings and comments, and without
/// a byte order mark. Columns stay the same.
std::string in_ascii(std::string_view all) {
  if (all.starts_with("\xEF\xBB\xBF")) all.remove_prefix(3);
  std::string out;
  for (const char letter : all) {
    if ((letter & 0xC0) == 0x80) continue;  // a continuation byte of UTF-8
    out += (letter & 0x80) != 0 ? '@' : letter;
  }
  return out;
}

/// Parses TOML, first in_ascii(): toml++ 3.3 fails an assertion where it looks for a blank and finds a letter
/// such as U+FDF7. A file that is read in ASCII has such letters only in strings and comments, where toml++
/// looks for blanks only behind a line that a backslash breaks; check_toml() refuses letters there.
toml::table parse(const std::string& text_of_file, const std::string& name) {
  check_toml(text_of_file, name);
  try {
    const std::string ascii = in_ascii(text_of_file);
    toml::table table = toml::parse(ascii, name);
    if (ascii != text_of_file) table = toml::parse(text_of_file, name);
    return table;  // moved, since a copy would lose the places of its values
  } catch (const toml::parse_error& error) {
    const toml::source_position& begin = error.source().begin;
    std::string why(error.description());
    if (const size_t stand_in = why.find("'@'");
        stand_in != std::string::npos && text_of_file.find('@') == std::string::npos)
      why.replace(stand_in, 3, "a letter beyond ASCII");
    fail(name, ":", static_cast<int64_t>(begin.line), ":", static_cast<int64_t>(begin.column), ": ",
         shown(why, 300), ". Fix the TOML here.");
  }
}

/// The text of a key at the top of the file; none without the key.
std::optional<std::string> top_text(const toml::table& table, std::string_view key, const std::string& name) {
  const toml::node* node = table.get(key);
  if (node == nullptr) return std::nullopt;
  if (const auto* value = node->as_string()) return value->get();
  fail(place_of(*node, name), key, " must be a text in quotes.");
}

/// Calls a function that uses the value of a key, and puts the key's place in front of its errors.
template <class Call>
auto at_place(const toml::table& table, std::string_view key, const std::string& name, Call call) {
  try {
    return call();
  } catch (const Error& error) {
    throw Error(error.fault(), place_of(*table.get(key), name) + error.what());
  }
}

Config from_preset(const std::string& name);

/// Sets the defaults of a recipe for all tasks, after those of the recipe it begins from.
void apply_recipe(Config& config, const std::string& recipe) {
  constexpr std::string_view folder = "train/presets/recipe_defaults/", ending = ".toml";
  std::vector<std::string> known;
  for (const EmbeddedFile& file : embedded_files()) {
    if (!file.path.starts_with(folder)) continue;
    known.emplace_back(file.path.substr(folder.size(), file.path.size() - folder.size() - ending.size()));
    if (known.back() != recipe) continue;
    const std::string name(file.path);
    const toml::table table = parse(std::string(file.text), name);
    if (const auto base = top_text(table, "recipe", name)) apply_recipe(config, *base);
    apply(config, table, "", name);
    for (auto& [key, origin] : config.origin) origin = {"recipe " + recipe, SetBy::preset};
    return;
  }
  fail("recipe '", shown(recipe), "' is unknown.", suggestion(recipe, known));
}

/// The settings that a file changes: those of a preset, or the defaults of a task and then of a recipe.
Config base_of(const toml::table& table, const std::string& name) {
  const auto preset = top_text(table, "preset", name);
  const auto task = top_text(table, "task", name);
  const auto recipe = top_text(table, "recipe", name);
  top_text(table, "about", name);
  if (preset) {
    const std::string of_recipe =
        recipe ? at_place(table, "recipe", name, [&] { return with_recipe(*preset, *recipe); }) : *preset;
    Config config = at_place(table, "preset", name, [&] { return from_preset(of_recipe); });
    if (task && *task != config.task_name)
      fail(place_of(*table.get("task"), name), "task = \"", shown(*task), "\", but the preset ", *preset,
           " is of the task ", config.task_name, ". Take one of them out.");
    return config;
  }
  if (!task)
    fail(name,
         ":1: it names neither a preset nor a task. Begin it with preset = \"translate\" or task = "
         "\"translate\".");
  Config config;
  config.task_name = *task;
  config.task = at_place(table, "task", name, [&] { return make_task(*task); });
  if (recipe) at_place(table, "recipe", name, [&] { return apply_recipe(config, *recipe); });
  return config;
}

/// The config of the text of a .toml file.
Config from_toml(const std::string& content, const std::string& name) {
  const toml::table table = parse(content, name);
  Config config = base_of(table, name);
  const auto length = [&](const char* key) {
    const toml::node* node = table["train"][key].node();
    if (node == nullptr) return std::string();
    std::string where = place_of(*node, name);
    return value_text(*node, where, text("train.", key)) == "0" ? std::string() : where;
  };
  replace_length(config, length("max_steps"), length("epochs"), SetBy::file);
  apply(config, table, "", name);
  return config;
}

Config from_preset(const std::string& name) {
  std::vector<std::string> known;
  for (const Preset& preset : presets()) {
    known.push_back(preset.name);
    if (name != preset.name) continue;
    Config config = from_toml(std::string(preset.toml), "preset " + name);
    config.preset = name;
    for (auto& [key, origin] : config.origin) origin = {"preset " + name, SetBy::preset};
    return config;
  }
  fail("preset '", shown(name), "' is unknown.", suggestion(name, known), " A .toml file works too.");
}

/// A value without quotes. Whole doubles that TOML could not read as integers get ".0": those of more than 18
/// digits, and -0.
std::string bare_text(const OptionText& option) {
  const std::string& value = option.value;
  const bool is_whole = option.kind == "number" && value.find_first_not_of("-0123456789") == value.npos;
  return is_whole && (value.size() > 18 || value == "-0") ? value + ".0" : value;
}

/// A TOML string.
std::string in_quotes(const std::string& value) {
  std::string out = "\"";
  for (char c : value) {
    if (c == '"' || c == '\\') out += '\\';
    const bool is_control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    out += is_control ? formatted("\\u%04X", static_cast<unsigned>(c)) : std::string(1, c);
  }
  return out + "\"";
}

}  // namespace

Config preset_config(const std::string& name) { return from_preset(name); }

Config parse_config(const std::string& toml, const std::string& name) { return from_toml(toml, name); }

Config make_config(const std::string& preset_or_file) {
  const bool is_file = preset_or_file.ends_with(".toml");
  Config config =
      is_file ? from_toml(io::read_text(preset_or_file), preset_or_file) : from_preset(preset_or_file);
  from_environment(config);
  return config;
}

Config read_config(const std::string& toml, const std::string& name) {
  const toml::table table = parse(toml, name);
  Config config;
  const auto task = top_text(table, "task", name);
  if (!task) fail(Fault::data, name, ":1: it names no task, so it is not a run's configuration.");
  config.task_name = *task;
  if (*task == "fit")
    fail(name,
         ": this is a run of fit() by a program, which alone has its model and data. Run that program "
         "again: it resumes the run.");
  config.preset = top_text(table, "preset", name).value_or("");
  config.task = at_place(table, "task", name, [&] { return make_task(*task); });
  apply(config, table, "", name, Names::of_any_version);
  return config;
}

void read_fit_options(TrainOptions& train, const std::string& toml, const std::string& name) {
  const toml::table table = parse(toml, name);
  const std::string task = top_text(table, "task", name).value_or("none");
  if (task != "fit")
    fail(Fault::data, name, ": this is a run of the task ", shown(task),
         ", not of fit(). Name another folder.");
  const toml::table* group = table["train"].as_table();
  if (group == nullptr) return;
  constexpr std::string_view prefix = "train.";
  for (const auto& [key, node] : *group) {
    std::string path = text(prefix, key.str());
    if (const std::string_view now = key_now(path); !now.empty()) path = now;
    const std::string where = place_of(node, name);
    set_option(train, path.substr(prefix.size()), value_text(node, where, path), where);
  }
}

std::string to_toml(Config& config) {
  std::string out = "# Every setting of the run. `heed train config.toml` runs it again.\n";
  out += "task = " + in_quotes(config.task_name) + "\n";
  if (!config.preset.empty()) out += "preset = " + in_quotes(config.preset) + "\n";
  std::string group;
  for (const OptionText& option : options_of(config)) {
    const size_t dot = option.name.find('.');
    if (option.name.substr(0, dot) != group) {
      group = option.name.substr(0, dot);
      out += "\n[" + group + "]\n";
    }
    std::string line = option.name.substr(dot + 1) + " = " +
                       (is_bare_in_toml(option) ? bare_text(option) : in_quotes(option.value));
    constexpr size_t help_column = 32;
    line.resize(std::max(line.size(), help_column), ' ');
    out += line + "  # " + option.help + "\n";
  }
  return out;
}

}  // namespace heed
