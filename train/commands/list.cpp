// heed list: attentions, layers, commands, settings, presets, tasks, runs and data.
#include <functional>

#include "heed/attention/layer_table.h"
#include "heed/attention/variant.h"
#include "heed/core/io/files.h"
#include "heed/core/io/table_text.h"
#include "heed/data/download/download.h"
#include "heed/train/commands/command_declarations.h"
#include "heed/train/commands/run_list.h"
#include "heed/train/pages/pages.h"
#include "heed/train/session/setting_options.h"
#include "heed/train/tasks/registry.h"
#include "heed/train/tasks/task.h"

namespace heed {
namespace {

/// Prints names and what they are; `name` and `about` are members of the list's elements, or functions of
/// them.
template <class List, class Name, class About>
void print_list(const List& list, Name name, About about) {
  std::vector<TableRow> rows;
  for (const auto& one : list)
    rows.push_back({terminal_word(std::invoke(name, one)), terminal_text(std::invoke(about, one))});
  io::print(aligned_table(rows, {.indent = 2}));
}

void list_runs(const ParsedArguments& arguments) {
  const Path folder = arguments.get("out", "runs");
  if (arguments.has("out") && !io::is_directory(folder))
    fail(Fault::file, "list runs: --out ", folder, " is no folder. Give the folder of your runs.");
  std::vector<ListedRun> runs = list_of_runs(folder);
  sort_runs(runs, arguments.get("sort", "name"));
  if (arguments.has("json"))
    io::print_data(runs_json(runs).dump() + "\n");
  else if (runs.empty())
    io::print_error(text("there are no runs in ", folder, "\n"));
  else
    io::print_data(runs_text(runs, arguments.has("wide")));
}

/// The completion script of the shell that the second argument names, else of bash.
std::string completion(const ParsedArguments& arguments) {
  const std::string shell = arguments.positional.size() > 1 ? arguments.positional[1] : "bash";
  return known_word("--completion:", shell, {"bash", "zsh"}) == "zsh" ? zsh_completion(commands())
                                                                      : bash_completion(commands());
}

/// Fails at options that are not for what is listed.
void check_options(const std::string& what, const ParsedArguments& arguments) {
  constexpr std::pair<const char*, std::string_view> lists_of_options[] = {
      {"json", "attention, layers and runs"},
      {"counted", "attention and layers"},
      {"markdown", "attention, layers, commands and settings"},
      {"man", "commands"},
      {"completion", "commands"},
      {"sort", "runs"},
      {"out", "runs"},
      {"wide", "attention and runs"}};
  for (const auto& [option, lists] : lists_of_options) {
    if (arguments.has(option) && lists.find(what) == std::string_view::npos)
      fail("list ", what, ": --", option, " is for ", lists, ".");
  }
  const bool takes_name = what == "attention" || arguments.has("completion");
  if (!takes_name && arguments.positional.size() > 1)
    fail("list ", what, ": unexpected argument '", arguments.positional[1],
         "'. Only attentions are listed by name.");
}

void list_attention(const ParsedArguments& arguments) {
  const Listing listing{
      .counted = arguments.has("counted"),
      .wide = arguments.has("wide"),
      .only = arguments.positional.size() > 1 ? &variant_named(arguments.positional[1]) : nullptr};
  io::print_data(arguments.has("markdown") ? variants_markdown(listing)
                 : arguments.has("json")   ? variants_json(listing)
                                           : variants_text(listing));
}

void list_layers(const ParsedArguments& arguments) {
  const std::vector<LayerCounts> counts =
      arguments.has("counted") ? count_layers() : std::vector<LayerCounts>{};
  io::print_data(arguments.has("markdown") ? layers_markdown(counts)
                 : arguments.has("json")   ? layers_json(counts)
                                           : layers_text(counts));
}

void list_commands(const ParsedArguments& arguments) {
  if (arguments.has("markdown"))
    io::print_data(commands_markdown(commands()));
  else if (arguments.has("man"))
    io::print_data(man_page(commands()));
  else if (arguments.has("completion"))
    io::print_data(completion(arguments));
  else
    print_list(commands(), &Command::name, &Command::about);
}

void list_settings(const ParsedArguments& arguments) {
  if (arguments.has("markdown"))
    io::print_data(settings_markdown());
  else
    print_list(settings(), &Setting::key, &Setting::help);
}

void list_presets(const ParsedArguments&) {
  print_list(presets(), &Preset::name, [](const Preset& one) {
    return one.recipe.empty() ? one.about : text("recipe ", one.recipe, ": ", one.about);
  });
}

void list_tasks(const ParsedArguments&) { print_list(tasks(), &TaskEntry::name, &TaskEntry::about); }

void list_data(const ParsedArguments&) {
  print_list(remote_corpora(), &RemoteCorpus::name, &RemoteCorpus::title);
}

struct ListCommand {
  const char* name;
  void (*print)(const ParsedArguments&);
};
constexpr ListCommand list_commands_by_name[] = {{"attention", list_attention}, {"layers", list_layers},
                                                 {"commands", list_commands},   {"settings", list_settings},
                                                 {"presets", list_presets},     {"tasks", list_tasks},
                                                 {"runs", list_runs},           {"data", list_data}};

int run_list(const ParsedArguments& arguments) {
  std::vector<std::string> known;
  for (const ListCommand& list : list_commands_by_name) known.emplace_back(list.name);
  const std::string what = known_word("list:", arguments.positional[0], known);
  check_options(what, arguments);
  for (const ListCommand& list : list_commands_by_name) {
    if (what == list.name) list.print(arguments);
  }
  return 0;
}

}  // namespace

Command command::list() {
  return {
      .name = "list",
      .about =
          "list attention, layers, commands, settings, presets, tasks, runs or data; one attention by name, "
          "with its options",
      .positional = "attention|layers|commands|settings|presets|tasks|runs|data [NAME]",
      .positional_help = "what to list; NAME: one attention, or bash or zsh with --completion",
      .min_positional = 1,
      .max_positional = 2,
      .options = {{"markdown", "", "attention, layers, commands and settings as the pages of docs/reference"},
                  {"man", "", "commands as the manual page heed(1)"},
                  {"completion", "",
                   "completion of commands: source <(heed list commands --completion) in bash, source <(heed "
                   "list commands --completion zsh) in zsh"},
                  {"json", "", "attention, layers and runs as JSON"},
                  {"counted", "",
                   "attention, layers: count anew how their costs grow; takes about a second each"},
                  {"out", "FOLDER",
                   "folder of all runs (default: runs); those of compare in it are listed too"},
                  {"sort", "WORD",
                   "runs by name, date (the newest first) or score (the best first) (default: name)"},
                  {"wide", "",
                   "attention, runs: every column, in lines of any width; runs with nothing cut and the time "
                   "of day"}},
      .run = run_list,
      .several_processes = true};
}

}  // namespace heed
