// heed compare: trains one task with several attentions, or takes finished runs, and compares them.
#include <algorithm>
#include <set>

#include "heed/core/io/files.h"
#include "heed/train/commands/command_declarations.h"
#include "heed/train/experiments/comparison_plan.h"
#include "heed/train/experiments/parallel_jobs.h"
#include "heed/train/progress/progress.h"
#include "heed/train/run/run_folder.h"
#include "heed/train/session/arguments.h"
#include "heed/train/session/side_by_side_runs.h"

namespace heed {
namespace {

std::vector<std::string> specs_of(const ParsedArguments& arguments) {
  std::vector<std::string> specs;
  for (const std::string& list : arguments.options.at("attention")) {
    for (const std::string& spec : split_specs(list)) {
      if (std::find(specs.begin(), specs.end(), spec) == specs.end()) specs.push_back(spec);
    }
  }
  return specs;
}

std::vector<PlannedRun> plans_of(const ParsedArguments& arguments) {
  const int64_t seeds = arguments.integer("seeds", 1, 1, 100);
  std::vector<PlannedRun> plans;
  for (const std::string& spec : specs_of(arguments)) {
    for (int64_t i = 0; i < seeds; ++i) {
      ParsedArguments one = arguments;
      one.options["attention"] = {spec};
      Config config = make_config(named_preset(arguments));
      apply_settings(config, one);
      config.train.seed += i;
      config.check();
      plans.push_back(plan_run(std::move(config), spec));
    }
  }
  return plans;
}

TimeBudget budget_of(const ParsedArguments& arguments) {
  if (!arguments.has("budget")) return {};
  return TimeBudget(duration_seconds(arguments.get("budget"), "--budget"));
}

Comparison of_folders(const std::vector<std::string>& folders) {
  std::set<std::string> names;
  bool distinct = true;
  for (const std::string& folder : folders)
    distinct = names.insert(Path(folder).lexically_normal().filename().string()).second && distinct;
  std::vector<ComparedRun> runs;
  std::string task;
  for (const std::string& folder : folders) {
    const std::string name = Path(folder).lexically_normal().filename().string();
    const Path settings = RunFolder::look(folder).config();
    const std::string its = read_config(io::read(settings), settings.string()).task_name;
    if (task.empty()) task = its;
    if (its != task)
      fail("compare: ", folder, " is of the task ", its, ", but ", folders.front(), " of ", task,
           ". Scores of different tasks cannot be compared: name runs of one task.");
    runs.push_back(read_compared(folder, distinct && !name.empty() ? name : folder));
  }
  return compare_runs("Runs side by side", std::move(runs));
}

int run_compare(const ParsedArguments& arguments) {
  apply_machine(arguments);
  const bool of_preset = arguments.has("attention");
  if (of_preset && arguments.positional.size() != 1)
    fail("compare: with --attention it takes one preset, but there are ", arguments.positional.size(),
         ". Without --attention it takes the folders of runs.");
  if (!of_preset && !io::is_directory(arguments.positional[0]))
    fail("compare: give --attention a,b,c to train '", arguments.positional[0],
         "' with each of them, or the folders of finished runs. heed list presets names the presets.");
  if (!of_preset) {
    refuse_others(
        arguments, "compare", {"name", "out", "quiet"},
        "does not go with finished runs, which are taken as they are. Leave it out, or give a preset "
        "and --attention to train it so.");
  }
  Path folder = Path(arguments.get("out", "runs")) / arguments.get("name", "compare");
  Comparison comparison;
  if (of_preset) {
    const std::string base = Path(named_preset(arguments)).stem().string();
    const std::vector<PlannedRun> plans = plans_of(arguments);
    if (!arguments.has("name")) folder = Path(arguments.get("out", "runs")) / ("compare-" + base);
    const TimeBudget budget = budget_of(arguments);
    const int64_t jobs = parse_jobs(arguments.get("jobs", "1"));
    try {
      check_models(plans, {.folder = folder, .quiet = arguments.has("quiet"), .budget = budget});
      comparison = compare_runs(base, make_runs(plans, {.folder = folder,
                                                        .machine = machine_options(arguments),
                                                        .quiet = arguments.has("quiet"),
                                                        .budget = budget,
                                                        .jobs = jobs}));
    } catch (const Stopped& stopped) {
      io::print_error(text("  ", to_string(stopped), "; run the same command again to continue\n"));
      return exit_code(stopped);
    }
  } else {
    comparison = of_folders(arguments.positional);
  }
  Progress progress;
  progress.quiet = arguments.has("quiet");
  progress.say("page", "laying the heads of all side by side");
  write_compared_maps(comparison, folder);
  write_comparison(comparison, folder);
  io::print(comparison_text(comparison));
  io::print(text("page: ", (folder / "compare.html").string(), "\n"));
  if (!comparison.maps.empty())
    io::print(text("heads side by side: ", (folder / comparison.maps).string(), "\n"));
  return exit_code(comparison);
}

}  // namespace

Command command::compare() {
  return {.name = "compare",
          .about = "train a preset with several attentions, or take finished runs, and compare them",
          .positional = "PRESET|RUN...",
          .positional_help = "a preset, with --attention; or the folders of finished runs of one task",
          .min_positional = 1,
          .max_positional = 1000,
          .options = with_machine_options(
              {recipe_option,
               {"attention", "A,B,C",
                "train the preset with each of these; may be repeated; (gla*3,softmax) is one"},
               {"seeds", "N", "runs of each, from train.seed on (default: 1)"},
               {"budget", "TIME",
                "saves and stops after this wall-clock time, such as 90s, 30m or 1h30m; the same command "
                "continues"},
               jobs_option,
               {"name", "NAME", "folder of the comparison (default: compare-PRESET)"},
               {"out", "FOLDER", "where that folder lies (default: runs)"},
               quiet_option}),
          .settings = true,
          .run = run_compare};
}

}  // namespace heed
