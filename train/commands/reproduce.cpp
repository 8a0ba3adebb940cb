// heed reproduce: reproduces published tables and compares them with the paper.
#include <algorithm>
#include <cmath>
#include <set>

#include "heed/core/io/ascii.h"
#include "heed/core/io/files.h"
#include "heed/core/io/no_follow_files.h"
#include "heed/core/io/table_text.h"
#include "heed/train/commands/command_declarations.h"
#include "heed/train/experiments/parallel_jobs.h"
#include "heed/train/experiments/reproduction.h"
#include "heed/train/run/program_name.h"
#include "heed/train/session/arguments.h"
#include "heed/train/session/setting_options.h"

namespace heed {
namespace {

std::string tables() {
  std::vector<TableRow> rows;
  for (const PublishedTable& table : published()) rows.push_back({table.name, table.about});
  return "Tables:\n" + aligned_table(rows, {.columns = unlimited_columns, .indent = 2});
}

/// The values of an option, split at commas; it may be given several times.
std::vector<std::string> list_of(const ParsedArguments& arguments, const std::string& option) {
  std::vector<std::string> out;
  if (!arguments.has(option)) return out;
  for (const std::string& list : arguments.options.at(option)) {
    for (size_t at = 0; at <= list.size();) {
      const size_t end = std::min(list.find(',', at), list.size());
      out.emplace_back(without_blanks(std::string_view(list).substr(at, end - at)));
      at = end + 1;
    }
  }
  return out;
}

std::map<std::string, std::string> data_of(const ParsedArguments& arguments, const PublishedTable& table) {
  std::map<std::string, std::string> out;
  if (!arguments.has("data")) return out;
  for (const std::string& one : arguments.options.at("data")) {
    const size_t equals = one.find('=');
    if (equals == std::string::npos || equals == 0)
      fail("--data ", one, ": write --data COLUMN=PATH, as in --data ", table.columns.front().name,
           "=FOLDER.");
    out[one.substr(0, equals)] = one.substr(equals + 1);
  }
  return out;
}

/// The names of the options that are no settings of the runs.
std::set<std::string> own_options() {
  std::set<std::string> out;
  for (const CommandOption& option : command::reproduce().options) out.insert(option.name);
  return out;
}

/// The arguments without the options of own_options(): the settings of the runs.
ParsedArguments settings_in(const ParsedArguments& arguments) {
  ParsedArguments out = arguments;
  for (const std::string& option : own_options()) out.options.erase(option);
  if (!out.has("set")) return out;
  for (const std::string& one : out.options.at("set")) {
    const std::string key = one.substr(0, one.find('='));
    if (key == "attention.encoder" || key == "attention.decoder" || key == "attention.cross")
      fail("reproduce: --set ", one, " does not go with a table, whose rows say the attention.");
  }
  return out;
}

/// The command line, quoted for a shell.
std::string same_command(const ParsedArguments& arguments) {
  std::string out = program_name();
  for (const std::string& argument : arguments.argv) out += " " + shell_word(argument);
  return out;
}

/// The settings as options: "--steps 100 --set data.depth=3".
std::string words_of(const ParsedArguments& settings) {
  std::string out;
  for (const auto& [name, values] : settings.options) {
    for (const std::string& value : values)
      out += text(out.empty() ? "" : " ", "--", name, " ", shell_word(value));
  }
  return out;
}

Path own_folder(const ParsedArguments& arguments, const std::string& table) {
  return Path(arguments.get("out", "runs")) / ("reproduce-" + table);
}

ReproductionOptions options_of_call(const ParsedArguments& arguments, const PublishedTable& table) {
  ReproductionOptions out;
  out.rows = list_of(arguments, "rows");
  out.seeds = arguments.integer("seeds", 1, 1, 100);
  const bool has_budget = arguments.has("budget");
  out.limit = arguments.number("limit", has_budget ? INFINITY : 600);
  if (!(out.limit >= 0)) fail("--limit = ", out.limit, ". It must be 0 or more seconds.");
  out.page_only = arguments.has("page");
  if (out.page_only && !trains(table.measure))
    fail("reproduce: --page is for tables whose cells are trained; ", table.name, " trains nothing.");
  out.max_length = arguments.integer("longest", 0, 64, int64_t{1} << 24);
  if (arguments.has("longest") && table.measure != Measure::crossover)
    fail("reproduce: --longest is for tables of lengths; ", table.name, " has none.");
  const bool swapped = table.measure == Measure::swapped;
  for (const char* option : {"run", "windows"}) {
    if (arguments.has(option) && !swapped)
      fail("reproduce: --", option, " is for tables of a trained model; ", table.name, " trains its own.");
  }
  out.run = arguments.get("run");
  if (swapped && out.run.empty()) {
    fail("reproduce: ", table.name, " takes a trained language model: --run RUN. Train one, as in ",
         program_name(), " train shakespeare-cpu --data tinyshakespeare.txt --max-length 256.");
  }
  out.max_windows = arguments.integer("windows", 0, 0);
  out.data = data_of(arguments, table);
  const ParsedArguments settings = settings_in(arguments);
  out.adjusted = words_of(settings);
  if (!out.adjusted.empty() && !trains(table.measure) && table.measure != Measure::steps_per_second)
    fail("reproduce: ", out.adjusted, " does not go with ", table.name, ", which trains nothing.");
  for (const GridPoint& point : table.points) with_point(settings, point);  // fails where both set the same
  out.adjust = [settings](Config& config, const GridPoint& point) {
    apply_settings(config, with_point(settings, point));
  };
  out.runs.folder = own_folder(arguments, table.runs_of.empty() ? table.name : table.runs_of);
  out.results = arguments.get("results", (own_folder(arguments, table.name) / "results").string());
  out.runs.machine = machine_options(arguments);
  out.runs.quiet = arguments.has("quiet");
  if (arguments.has("jobs") && !trains(table.measure))
    fail("reproduce: --jobs is for tables whose cells are trained; ", table.name, " trains nothing.");
  out.runs.jobs = parse_jobs(arguments.get("jobs", "1"));
  if (has_budget) out.runs.budget = TimeBudget(duration_seconds(arguments.get("budget"), "--budget"));
  return out;
}

int run_reproduce(const ParsedArguments& arguments) {
  if (arguments.positional.empty()) {
    io::print(tables());
    return 0;
  }
  const PublishedTable& table = published_table(arguments.positional[0]);
  const ReproductionOptions options = options_of_call(arguments, table);
  apply_machine(arguments);
  const Reproduction result = reproduce(table, options);
  const Path own = own_folder(arguments, table.name);
  io::make_directories(own);
  io::write_own(own / "reproduce.csv", reproduction_csv(result));
  io::print(reproduction_text(table, result));
  io::print(text("page: ", (options.results / (table.name + ".md")).string(), "\n"));
  if (result.stopped) {
    const std::string done = result.runs > 0 ? text(result.done, " of ", result.runs, " runs are done")
                                             : text("its runs were still being planned");
    io::print_error(text("  ", to_string(*result.stopped), ": ", done, "; continue with\n  ",
                         same_command(arguments), "\n"));
    return exit_code(*result.stopped);
  }
  const auto failed = std::find_if(result.cells.begin(), result.cells.end(),
                                   [](const CellResult& cell) { return cell.code != 0; });
  return failed == result.cells.end() ? 0 : failed->code;
}

}  // namespace

Command command::reproduce() {
  return {
      .name = "reproduce",
      .about = "reproduce a published table and compare with the paper; without a name: list the tables",
      .positional = "TABLE",
      .positional_help = "a published table; left out: which there are",
      .max_positional = 1,
      .options = with_machine_options(
          {{"rows", "A,B", "these ROWs, COLUMNs or ROW/COLUMNs, however long they take"},
           {"seeds", "N", "runs of each (default: 1)"},
           {"budget", "TIME",
            "saves and stops after this wall-clock time, such as 90s, 30m, 2h or 1h30m; the same command "
            "continues"},
           jobs_option,
           {"limit", "SECONDS",
            "skips cells predicted to take longer unless named in --rows (default: 600; none with --budget)"},
           {"page", "", "only writes the page of what is there: runs and estimates nothing"},
           {"data", "COLUMN=PATH", "the data of a column; may be repeated"},
           {"results", "FOLDER",
            "where curves, pictures and the page go (default: results in the table's folder)"},
           {"longest", "N",
            "of tables of lengths: the longest that is measured (default: twice the paper's)"},
           {"run", "RUN", "trained language model for casinoformer-figure2"},
           {"windows", "N",
            "of casinoformer-figure2: windows of each of the two portions of the text (default: 0, all)"},
           {"out", "FOLDER", "where its folder lies (default: runs)"},
           quiet_option}),
      .settings = true,
      .run = run_reproduce,
      .more = tables,
      .attention = false};
}

}  // namespace heed
