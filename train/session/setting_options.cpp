// Settings as options: what each means in which task, and how a config takes them.
#include "heed/train/session/setting_options.h"

#include <algorithm>
#include <map>
#include <set>

#include "heed/nn/set_option.h"
#include "heed/train/config/config.h"
#include "heed/train/tasks/registry.h"
#include "heed/train/tasks/task.h"

namespace heed {
namespace {

/// What a setting means in some tasks.
struct Meaning {
  std::string help;                                              // with the words or the range that it takes
  std::vector<std::pair<std::string, std::string>> values = {};  // each task, and the default in it
};

/// Writes a range: "1 to 1000", or "from 0" where it has no maximum of its own.
std::string range_text(const IntRange& range) {
  return range.max >= max_integer ? text("from ", range.min) : text(range.min, " to ", range.max);
}

/// Lists tasks: "lm, mnist". "lra" stands for all tasks of the Long Range Arena, "mad" for all of MAD.
std::string names_of(std::vector<std::string> some) {
  std::vector<std::string> every;
  for (const TaskEntry& entry : tasks()) every.emplace_back(entry.name);
  for (const std::string family : {"lra", "mad"}) {
    const auto is_member = [&](const std::string& name) { return name.starts_with(family + "-"); };
    if (std::count_if(some.begin(), some.end(), is_member) !=
        std::count_if(every.begin(), every.end(), is_member))
      continue;
    const auto first = std::find_if(some.begin(), some.end(), is_member);
    *first = family;
    some.erase(std::remove_if(first, some.end(), is_member), some.end());
  }
  std::string out;
  for (const std::string& name : some) out += (out.empty() ? "" : ", ") + name;
  return out;
}

/// Lists defaults: " [0.1]", or " [5 in lm, recall; 7 in mnist]".
std::string defaults_of(const Meaning& meaning) {
  std::vector<std::pair<std::string, std::vector<std::string>>>
      groups;  // each value, and the tasks that have it
  for (const auto& [task, value] : meaning.values) {
    const auto same = std::find_if(groups.begin(), groups.end(),
                                   [&value = value](const auto& one) { return one.first == value; });
    if (same == groups.end())
      groups.push_back({value, {task}});
    else
      same->second.push_back(task);
  }
  if (groups.size() == 1) return groups[0].first.empty() ? "" : " [" + groups[0].first + "]";
  std::string out;
  for (const auto& [value, names] : groups)
    out += (out.empty() ? " [" : "; ") + value + " in " + names_of(names);
  return out + "]";
}

std::string help_of(const std::vector<Meaning>& meanings) {
  if (meanings.size() == 1 && meanings[0].values.size() == tasks().size())
    return meanings[0].help + defaults_of(meanings[0]);
  std::string out;
  for (const Meaning& one : meanings) {
    std::vector<std::string> names;
    for (const auto& [task, value] : one.values) names.push_back(task);
    out += (out.empty() ? "" : "\n") + names_of(names) + ": " + one.help + defaults_of(one);
  }
  return out;
}

/// Names the option, of several, that gives the length of training; empty where none does.
std::string length_option(const ParsedArguments& arguments, const std::vector<std::string>& names) {
  for (const std::string& one : names) {
    if (arguments.has(one) && arguments.get(one) != "0") return "--" + one + ": ";
  }
  return "";
}

/// "--set " where a --set gives the length of training that begins with `start`; else empty.
std::string length_set(const std::vector<std::string>& sets, const std::string& start) {
  const bool given = std::any_of(sets.begin(), sets.end(), [&](const std::string& one) {
    return one.starts_with(start) && one != start + "0";
  });
  return given ? "--set " : "";
}

/// The short option of a setting; empty where it has none.
std::string brief_option(const std::string& key) {
  if (key == "train.learning_rate") return "lr";
  return key == "train.max_steps" ? "steps" : "";
}

/// A name with '_' for each '-': settings and their options have either.
std::string with_underscores(std::string name) {
  std::ranges::replace(name, '-', '_');
  return name;
}

/// The setting of this name, in which '-' and '_' are the same.
Setting setting_named(const std::string& name) {
  const std::string wanted = with_underscores(name);
  std::vector<std::string> names;
  for (const Setting& setting : settings()) {
    for (const std::string& known : {setting.brief, setting.option, setting.key}) {
      if (known.empty()) continue;
      names.push_back(with_underscores(known));
      if (names.back() == wanted) return setting;
    }
  }
  known_word("--grid: the setting", wanted, names);
  return {};
}

/// Fails for a setting that has an option of its own in a comparison.
void refuse_own(const Setting& setting) {
  if (setting.key.starts_with("attention."))
    fail("--grid: ", setting.key, " is no setting of a grid. List attentions with --attention A,B.");
  if (setting.key == "train.seed")
    fail("--grid: seeds are no setting of a grid. Give their number with --seeds.");
}

}  // namespace

std::vector<Setting> settings() {
  std::vector<Setting> all;
  std::map<std::string, std::vector<Meaning>> meanings;
  std::set<std::string> taken{"from"};  // --from is the run that training begins from, not data.from
  for (const TaskEntry& entry : tasks()) {
    Config config;
    config.task = entry.make();
    for (const OptionText& option : options_of(config)) {
      const bool word = option.kind.find('|') != std::string::npos;
      std::vector<Meaning>& known = meanings[option.name];
      if (known.empty()) {
        all.push_back({option.name, option.name.substr(option.name.rfind('.') + 1), brief_option(option.name),
                       "", word});
      }
      const std::string legal = word ? option.kind : option.range ? range_text(*option.range) : "";
      const std::string help = option.help + (legal.empty() ? "" : " (" + legal + ")");
      auto same =
          std::find_if(known.begin(), known.end(), [&](const Meaning& one) { return one.help == help; });
      if (same == known.end()) same = known.insert(known.end(), Meaning{.help = help});
      same->values.emplace_back(entry.name, option.follows.empty() ? option.value : "");
    }
  }
  for (Setting& setting : all) {
    setting.help = help_of(meanings[setting.key]);
    if (setting.key == "data.path")
      setting.option = "data";
    else if (setting.key == "model.kind")
      setting.option = "model";
    else if (!taken.insert(setting.option).second)
      setting.option = setting.key;
    for (char& c : setting.option) c = c == '_' ? '-' : c;
  }
  return all;
}

std::vector<CommandOption> options_beside_settings(const Command& command) {
  std::vector<CommandOption> out;
  if (command.attention) {
    out.push_back(
        {"attention", "SPEC",
         "self-attention: name or name:key=value,...; by layer: gla*3,softmax or softmax;1-11=gla"});
    out.push_back({"cross-attention", "SPEC", "attention from decoder to encoder"});
  }
  out.push_back(
      {"set", "KEY=VALUE", "key=value for any dotted key; wins over the key's own option; may be repeated"});
  std::erase_if(out, [&](const CommandOption& one) {
    return std::any_of(command.options.begin(), command.options.end(),
                       [&](const CommandOption& own) { return std::string_view(own.name) == one.name; });
  });
  return out;
}

void set_by_option(Config& config, const std::string& key, const ParsedArguments& arguments,
                   const std::string& option) {
  if (arguments.has(option))
    config.set(key, arguments.get(option), "--" + option + ": ", SetBy::command_line);
}

void apply_settings(Config& config, const ParsedArguments& arguments) {
  set_by_option(config, "attention.encoder", arguments, "attention");
  set_by_option(config, "attention.decoder", arguments, "attention");
  set_by_option(config, "attention.cross", arguments, "cross-attention");
  replace_length(config, length_option(arguments, {"max-steps", "steps", "train.max_steps"}),
                 length_option(arguments, {"epochs", "train.epochs"}), SetBy::command_line);
  for (const Setting& setting : settings()) {
    for (const std::string& name : {setting.option, setting.brief, setting.key}) {
      const auto given =
          arguments.options.find(name);  // `show` has a flag of the name of a setting, without values
      if (given != arguments.options.end() && !given->second.empty())
        config.set(setting.key, given->second.back(), "--" + name + ": ", SetBy::command_line);
    }
  }
  const auto sets = arguments.options.find("set");
  if (sets == arguments.options.end()) return;
  replace_length(config, length_set(sets->second, "train.max_steps="),
                 length_set(sets->second, "train.epochs="), SetBy::command_line);
  for (const std::string& one : sets->second) {
    const size_t equals = one.find('=');
    if (equals == std::string::npos)
      fail("--set ", one, ": write --set key=value, as in --set train.learning_rate=1e-3.");
    config.set(one.substr(0, equals), one.substr(equals + 1), "--set ", SetBy::command_line);
  }
}

ParsedArguments with_point(ParsedArguments arguments, const GridPoint& point) {
  for (const auto& [name, value] : point) {
    const Setting setting = setting_named(name);
    refuse_own(setting);
    const auto sets = arguments.options.find("set");
    const bool is_set =
        sets != arguments.options.end() && std::ranges::any_of(sets->second, [&](const std::string& one) {
          return one.starts_with(setting.key + "=");
        });
    for (const std::string& option : {setting.brief, setting.option, setting.key}) {
      if (is_set || (!option.empty() && arguments.has(option)))
        fail("the grid tries values of ", name, ", and ", is_set ? "--set" : "--" + option,
             " sets it, too. Leave one of them out.");
    }
    arguments.options[setting.key] = {value};
  }
  return arguments;
}

}  // namespace heed
