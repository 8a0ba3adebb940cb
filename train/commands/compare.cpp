// heed compare: trains one task with several attentions, or takes finished runs, and compares them.
#include <algorithm>
#include <set>

#include "heed/attention/state_size.h"
#include "heed/core/io/files.h"
#include "heed/train/commands/command_declarations.h"
#include "heed/train/experiments/comparison_plan.h"
#include "heed/train/experiments/comparison_sweep.h"
#include "heed/train/experiments/parallel_jobs.h"
#include "heed/train/progress/progress.h"
#include "heed/train/run/run_folder.h"
#include "heed/train/session/arguments.h"
#include "heed/train/session/setting_options.h"
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

/// The run of an attention with the settings of a point; `seed` is added to train.seed.
PlannedRun plan_of(const ParsedArguments& arguments, const std::string& spec, const GridPoint& point,
                   int64_t seed) {
  ParsedArguments one = with_point(arguments, point);
  one.options["attention"] = {spec};
  Config config = make_config(named_preset(arguments));
  apply_settings(config, one);
  config.train.seed += seed;
  config.check();
  PlannedRun plan = plan_run(std::move(config), spec);
  plan.point = point;
  return plan;
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

/// The state of each row's attention after the longest input, or 512 tokens of it.
void set_states(Comparison& comparison, const ParsedArguments& arguments) {
  constexpr int64_t max_state_length = 512;  // a map of that length is small, whatever the attention
  Config config = make_config(named_preset(arguments));
  apply_settings(config, arguments);
  AttentionConfig attention = config.model.attention_config();
  attention.layers = std::max<int64_t>(config.model.layers, 1);
  comparison.state_length = std::min(config.model.max_length, max_state_length);
  for (ComparedRow& row : comparison.rows) {
    try {
      row.state = state_size(row.label, attention, comparison.state_length);
    } catch (const Error&) {
      // An attention that this model cannot have has no state, and its row says why it failed.
    }
  }
}

/// Trains a preset with each attention, at each point of the grid, and the best points with more seeds.
Comparison trained(const ParsedArguments& arguments, const std::string& title,
                   const ComparisonOptions& options) {
  const bool has_grid = arguments.has("grid");
  if (!has_grid && arguments.has("grid-seeds"))
    fail("compare: --grid-seeds goes with --grid. Without a grid --seeds alone gives the number of seeds.");
  const int64_t seeds = arguments.integer("seeds", 1, 1, 100);
  const int64_t seeds_each = has_grid ? arguments.integer("grid-seeds", 1, 1, seeds) : seeds;
  std::vector<PlannedRun> plans;
  for (const std::string& spec : specs_of(arguments)) {
    for (const GridPoint& point : has_grid ? parse_grid(arguments.get("grid")) : std::vector<GridPoint>(1)) {
      for (int64_t seed = 0; seed < seeds_each; ++seed)
        plans.push_back(plan_of(arguments, spec, point, seed));
    }
  }
  check_models(plans, options);
  std::vector<ComparedRun> runs = make_runs(plans, options);
  std::string selection;
  if (has_grid) {
    selection = choose_points(runs);
    std::vector<PlannedRun> more;
    for (size_t i = 0; i < plans.size(); i += static_cast<size_t>(seeds_each)) {
      for (int64_t seed = seeds_each; runs[i].chosen && seed < seeds; ++seed)
        more.push_back(plan_of(arguments, plans[i].label, plans[i].point, seed));
    }
    if (!more.empty()) std::ranges::move(make_runs(more, options), std::back_inserter(runs));
  }
  Comparison out = compare_runs(title, std::move(runs));
  out.selection = selection;
  out.command = arguments.command_line();
  return out;
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
    if (!arguments.has("name")) folder = Path(arguments.get("out", "runs")) / ("compare-" + base);
    try {
      comparison = trained(arguments, base,
                           {.folder = folder,
                            .machine = machine_options(arguments),
                            .quiet = arguments.has("quiet"),
                            .budget = budget_of(arguments),
                            .jobs = parse_jobs(arguments.get("jobs", "1"))});
      set_states(comparison, arguments);
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
               {"grid", "GRID",
                "tries settings: lr=1e-4:1e-2:4,weight_decay=0,0.1 has four rates by two decays; each "
                "attention then has its best by validation"},
               {"grid-seeds", "N",
                "runs of each setting of the grid (default: 1); the best has those of --seeds"},
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
