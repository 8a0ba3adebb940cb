// heed train: a new run.
#include <algorithm>
#include <cstdio>

#include "heed/core/distributed/mpi.h"
#include "heed/core/io/files.h"
#include "heed/core/io/temporary_folder.h"
#include "heed/train/commands/command_declarations.h"
#include "heed/train/session/distributed_session.h"
#include "heed/train/commands/find_lr.h"
#include "heed/train/session/dry_run.h"
#include "heed/train/session/run_session.h"
#include "heed/train/config/debug_runs.h"
#include "heed/train/loop/pretraining.h"
#include "heed/train/run/initial_weights.h"

namespace heed {
namespace {

/// The settings of a trained run, for another that begins from its weights.
Config config_of_run(const Path& run) {
  if (!io::exists(run / "config.toml")) {
    fail(Fault::file, "train: --from ", shown(run.string()),
         " is no run: it has no config.toml. Give the folder of a run; the language of sources is "
         "--data.from.");
  }
  const RunFolder folder = RunFolder::look(run);
  Config config = read_config(io::read(folder.config()), folder.config().string());
  config.train.pretrain = Pretrain::none;  // its weights are trained already
  config.train.pretrain_steps = 0;
  return config;
}

Config config_of(const ParsedArguments& arguments) {
  Config config = arguments.has("from") ? config_of_run(arguments.get("from"))
                                        : make_config(named_preset(arguments, "translate"));
  apply_settings(config, arguments);
  if (arguments.has("from") && config.train.pretrain != Pretrain::none)
    fail("train: --from gives the weights that training begins from, and so would --pretrain. Take one out.");
  if (arguments.has("fast-dev-run")) fast_dev_run(config);
  if (arguments.has("overfit")) overfit(config, arguments.integer("overfit", 0));
  config.check();
  return config;
}

/// Fails at options that do not go together: one of them would be ignored without notice.
void check_modes(const ParsedArguments& arguments) {
  if (arguments.has("json") && !arguments.has("dry-run")) fail("train: --json is for --dry-run.");
  for (const auto& [one, other] : {std::pair{"fast-dev-run", "overfit"},
                                   {"find-lr", "fast-dev-run"},
                                   {"find-lr", "overfit"},
                                   {"find-lr", "trace"},
                                   {"dry-run", "trace"},
                                   {"find-lr", "from"},
                                   {"recipe", "from"},
                                   {"find-lr", "dry-run"}}) {
    if (arguments.has(one) && arguments.has(other))
      fail("train: --", one, " and --", other, " do not go together. Take one of them out.");
  }
  if (arguments.has("from") && !arguments.positional.empty()) {
    fail("train: --from takes the settings of its run, and '", shown(arguments.positional[0]),
         "' names others. Take one of them out; single settings are options.");
  }
  if (arguments.has("from-checkpoint") && !arguments.has("from"))
    fail("train: --from-checkpoint is for --from.");
  if (!arguments.has("find-lr")) {
    for (const char* option : {"find-lr-from", "find-lr-to", "find-lr-steps"}) {
      if (arguments.has(option)) fail("train: --", option, " is for --find-lr.");
    }
    return;
  }
  for (const char* option : {"name", "lr", "learning-rate", "steps", "max-steps", "epochs"}) {
    if (arguments.has(option))
      fail("train: --find-lr makes no run, tries rates of its own and takes --find-lr-steps steps. Take --",
           option, " out.");
  }
}

int find_rate(Config config, const ParsedArguments& arguments) {
  if (const auto started = launch_info()) {
    fail("train: --find-lr is the work of one process, but ", started->by, " started ", started->size,
         ". Start it without ", started->by, ".");
  }
  if (config.train.pretrain != Pretrain::none)
    fail(
        "train: --find-lr tests the training from fresh weights, and train.pretrain gives others. Add "
        "--pretrain ",
        "none --pretrain-steps 0.");
  return find_lr(config, arguments);
}

/// Refuses a file that a trace could not be written into, before there is a run.
void prepare_trace(const Path& file) {
  if (const auto started = launch_info()) {
    fail("train: --trace records one process, but ", started->by, " started ", started->size,
         ". Start it without ", started->by, ".");
  }
  if (!file.parent_path().empty()) io::make_directories(file.parent_path());
  io::write(file, "");
}

int show_plan(Config config, const ParsedArguments& arguments) {
  if (const auto started = launch_info()) {
    fail("train: --dry-run is the work of one process, but ", started->by, " started ", started->size,
         ". Start it without ", started->by, ".");
  }
  apply_machine(arguments);
  if (arguments.has("json")) {
    print_estimate_json(config, arguments);
    return 0;
  }
  io::print_data(to_toml(config));
  print_estimate(config, arguments);
  return 0;
}

/// What a run without --name is called, before its number.
std::string base_name(const ParsedArguments& arguments) {
  if (arguments.has("from")) {
    const Path run = Path(arguments.get("from") + "/").lexically_normal().parent_path().filename();
    return run.empty() || run == "." || run == ".." ? "run" : run.string();
  }
  const std::string what = named_preset(arguments, "translate");
  return what.ends_with(".toml") ? Path(what).stem().string() : what;
}

/// The checkpoint that --from and --from-checkpoint name.
Checkpoint trained_weights(const ParsedArguments& arguments) {
  const Path run = arguments.get("from");
  if (arguments.has("from-checkpoint")) return open_checkpoint(run, arguments.get("from-checkpoint"));
  return open_checkpoint(run, best_step(run) ? "best" : "last");
}

int run_train(const ParsedArguments& arguments) {
  check_modes(arguments);
  Config config = config_of(arguments);
  if (arguments.has("dry-run")) return show_plan(std::move(config), arguments);
  if (arguments.has("find-lr")) return find_rate(std::move(config), arguments);
  if (arguments.has("trace")) prepare_trace(arguments.get("trace"));
  std::optional<io::TemporaryFolder> temporary;  // of a run that leaves nothing
  const std::string base = base_name(arguments);
  std::optional<Checkpoint> initial;
  if (arguments.has("from")) initial = trained_weights(arguments);
  Path made;  // by this process
  const auto open = [&](int64_t processes) {
    if (!initial) widen_batch(config, processes);  // that of a run is of all its processes already
    rounding_of(config.train.precision);  // refuses what this device has not, before there is a folder
    if (leaves_nothing(arguments)) temporary.emplace("fast-dev-run");
    RunFolder folder =
        RunFolder::create({.out = temporary ? temporary->path() : Path(arguments.get("out", "runs")),
                           .name = arguments.get("name"),
                           .base = base,
                           .command = arguments.command_line(),
                           .config = to_toml(config),
                           .contents = [&](const Path& begun) {
                             if (initial) write_initial(begun, *initial, arguments.get("from"));
                           }});
    made = folder.path();
    if (initial) initial = read_initial(made);
    return Opening{std::move(config), std::move(folder), {}, std::move(initial)};
  };
  return train_as_started(arguments, open, [&] {
    // A run that failed before it had anything to show has nothing to keep.
    if (!made.empty() && !RunFolder::elsewhere(made).begun() && !pretraining_begun(made))
      io::remove_all(made);
  });
}

}  // namespace

Command command::train() {
  std::vector<CommandOption> options{
      recipe_option,
      {"from", "RUN",
       "settings and weights of a trained run in place of a preset: fine-tuning, with other settings and "
       "another --attention where given"},
      {"from-checkpoint", "WHICH", "of that run: best, last or a step (default: best)"},
      {"name", "NAME", "name of the run; numbered when not given"},
      {"out", "FOLDER", "folder of all runs (default: runs)"},
      {"dry-run", "", "print the settings and what the run would take, and stop"},
      {"json", "", "with --dry-run: only what it would take, as one JSON object"},
      {"fast-dev-run", "",
       "two steps of everything on few data, validation, test and report included, to see that it works; "
       "leaves "
       "nothing, unless --out or --name is given"},
      {"overfit", "N",
       "train on the same N batches again and again, without dropout and label smoothing, and say whether "
       "the model "
       "has learned them"}};
  options.push_back(
      {"trace", "FILE",
       "write a timeline of steps 2 to 4 into this file: modules, ops, gradients, threads and memory, "
       "for chrome://tracing or Perfetto"});
  for (const CommandOption& one : find_lr_options()) options.push_back(one);
  options.push_back(collective_timeout_option);
  options.push_back({"quiet", "", "print nothing while working"});
  return {"train",
          "train a model: a preset, or a .toml file of settings (default: translate)",
          "PRESET|FILE",
          "a preset (heed list presets), or a .toml file of settings",
          0,
          1,
          with_machine(std::move(options)),
          true,
          run_train,
          nullptr,
          true};
}

}  // namespace heed
