// heed list: what there is.
#include <cstdio>

#include "heed/attention/layer_table.h"
#include "heed/attention/variant.h"
#include "heed/core/io/files.h"
#include "heed/core/io/terminal.h"
#include "heed/data/download/download.h"
#include "heed/train/commands/command_declarations.h"
#include "heed/train/pages/pages.h"
#include "heed/train/commands/run_list.h"
#include "heed/train/tasks/registry.h"
#include "heed/train/tasks/task.h"

namespace heed {
namespace {

void row(const std::string& name, const std::string& text) {
  io::printf("  %-24s %s\n", terminal_word(name).c_str(), terminal_word(text).c_str());
}

void list_runs(const ParsedArguments& arguments) {
  const Path folder = arguments.get("out", "runs");
  std::vector<ListedRun> runs = list_of_runs(folder);
  sort_runs(runs, arguments.get("sort", "name"));
  if (arguments.has("json"))
    io::print_data(runs_json(runs).dump() + "\n");
  else if (runs.empty())
    io::print_error(text("there are no runs in ", folder, "\n"));
  else
    io::print_data(runs_text(runs, arguments.has("wide")));
}

/// The completion script of the shell that is named behind `list commands`, or of bash.
std::string completion(const ParsedArguments& arguments) {
  const std::string shell = arguments.positional.size() > 1 ? arguments.positional[1] : "bash";
  const std::vector<std::string> known{"bash", "zsh"};
  if (shell == "zsh") return zsh_completion();
  if (shell != "bash") fail("--completion: '", shell, "' is unknown.", suggestion(shell, known));
  return bash_completion();
}

/// Fails at options that are not for what is listed.
void check_options(const std::string& what, const ParsedArguments& arguments) {
  const bool has_costs = what == "attention" || what == "layers";
  if (!has_costs && what != "runs" && arguments.has("json"))
    fail("list ", what, ": --json is for attention, layers and runs.");
  if (!has_costs && arguments.has("counted")) fail("list ", what, ": --counted is for attention and layers.");
  if (!has_costs && what != "commands" && what != "settings" && arguments.has("markdown"))
    fail("list ", what, ": --markdown is for attention, layers, commands and settings.");
  if (what != "commands" && (arguments.has("man") || arguments.has("completion")))
    fail("list ", what, ": --man and --completion are for commands.");
  if (what != "runs" && (arguments.has("sort") || arguments.has("wide")))
    fail("list ", what, ": --sort and --wide are for runs.");
  const bool takes_name = what == "attention" || arguments.has("completion");
  if (!takes_name && arguments.positional.size() > 1)
    fail("list ", what, ": unexpected argument '", arguments.positional[1],
         "'. Only attentions are listed by name.");
}

int run_list(const ParsedArguments& arguments) {
  const std::string what = arguments.positional[0];
  check_options(what, arguments);
  if (what == "attention") {
    const Listing listing{
        .counted = arguments.has("counted"),
        .only = arguments.positional.size() > 1 ? &variant_named(arguments.positional[1]) : nullptr};
    io::print_data(arguments.has("markdown") ? variants_markdown(listing)
                   : arguments.has("json")   ? variants_json(listing)
                                             : variants_text(listing));
  } else if (what == "layers") {
    const std::vector<LayerCounts> counts =
        arguments.has("counted") ? count_layers() : std::vector<LayerCounts>{};
    io::print_data(arguments.has("markdown") ? layers_markdown(counts)
                   : arguments.has("json")   ? layers_json(counts)
                                             : layers_text(counts));
  } else if (what == "commands") {
    if (arguments.has("markdown")) {
      io::print_data(commands_markdown());
    } else if (arguments.has("man")) {
      io::print_data(man_page());
    } else if (arguments.has("completion")) {
      io::print_data(completion(arguments));
    } else {
      for (const Command& command : commands()) row(command.name, command.about);
    }
  } else if (what == "settings") {
    if (arguments.has("markdown")) {
      io::print_data(settings_markdown());
    } else {
      for (const Setting& setting : settings()) row(setting.key, setting.help);
    }
  } else if (what == "presets") {
    for (const Preset& preset : presets())
      row(preset.name,
          preset.recipe.empty() ? preset.about : text("recipe ", preset.recipe, ": ", preset.about));
  } else if (what == "tasks") {
    for (const TaskEntry& entry : tasks()) row(entry.name, entry.about);
  } else if (what == "runs") {
    list_runs(arguments);
  } else if (what == "data") {
    for (const RemoteCorpus& corpus : remote_corpora()) row(corpus.name, corpus.title);
  } else {
    const std::vector<std::string> known{"attention", "layers", "commands", "settings",
                                         "presets",   "tasks",  "runs",     "data"};
    fail("list: '", what, "' is unknown.", suggestion(what, known));
  }
  return 0;
}

}  // namespace

Command command::list() {
  return {
      "list",
      "list attention, layers, commands, settings, presets, tasks, runs or data; one attention by name, "
      "with its options",
      "WHAT [NAME]",
      "attention, layers, commands, settings, presets, tasks, runs or data; NAME: one attention, or bash or "
      "zsh with --completion",
      1,
      2,
      {{"markdown", "", "attention, layers, commands and settings as the pages of docs/reference"},
       {"man", "", "commands as the manual page heed(1)"},
       {"completion", "",
        "completion of commands: source <(heed list commands --completion) in bash, source <(heed list "
        "commands --completion zsh) in zsh"},
       {"json", "", "attention, layers and runs as JSON"},
       {"counted", "", "attention, layers: count anew how their costs grow; takes about a second each"},
       {"out", "FOLDER", "folder of all runs (default: runs); those of compare in it are listed too"},
       {"sort", "WORD", "runs by name, date (the newest first) or score (the best first) (default: name)"},
       {"wide", "", "runs in lines of any length, with nothing cut and the time of day"}},
      false,
      run_list,
      nullptr,
      true};
}

}  // namespace heed
