// heed train: trains a new run.
#include <algorithm>

#include "heed/core/distributed/mpi.h"
#include "heed/core/io/files.h"
#include "heed/core/io/temporary_folder.h"
#include "heed/train/commands/command_declarations.h"
#include "heed/train/config/debug_runs.h"
#include "heed/train/loop/pretraining.h"
#include "heed/train/progress/progress.h"
#include "heed/train/run/weights_from_run.h"
#include "heed/train/session/distributed_session.h"
#include "heed/train/session/dry_run.h"
#include "heed/train/session/run_session.h"

namespace heed {
namespace {

/// The settings of a trained run, for a run that begins from its weights.
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

/// The settings of the new run: of a preset, a file or another run, and then of the options.
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

/// Fails for options that cannot be combined, where one would be ignored without notice.
void check_modes(const ParsedArguments& arguments) {
  if (arguments.has("json") && !arguments.has("dry-run")) fail("train: --json is for --dry-run.");
  for (const auto& [one, other] :
       {std::pair{"fast-dev-run", "overfit"}, {"dry-run", "trace"}, {"recipe", "from"}}) {
    if (arguments.has(one) && arguments.has(other))
      fail("train: --", one, " and --", other, " do not go together. Take one of them out.");
  }
  if (arguments.has("from") && !arguments.positional.empty()) {
    fail("train: --from takes the settings of its run, and '", shown(arguments.positional[0]),
         "' names others. Take one of them out; single settings are options.");
  }
  if (arguments.has("from-checkpoint") && !arguments.has("from"))
    fail("train: --from-checkpoint is for --from.");
}

/// Fails where several processes were started for a mode that is the work of one.
void refuse_several_processes(const std::string& option) {
  const auto started = launch_info();
  if (!started) return;
  fail("train: ", option, " is the work of one process, but ", started->by, " started ", started->size,
       ". Start it without ", started->by, ".");
}

/// Creates the file of --trace before there is a run, and fails where it cannot be written.
void prepare_trace(const Path& file) {
  refuse_several_processes("--trace");
  if (!file.parent_path().empty()) io::make_directories(file.parent_path());
  io::write(file, "");
}

/// Prints the settings and the estimate of the run, for --dry-run.
int print_plan(Config config, const ParsedArguments& arguments) {
  refuse_several_processes("--dry-run");
  apply_machine(arguments);
  if (arguments.has("json")) {
    print_estimate_json(config, arguments);
    return 0;
  }
  io::print_data(to_toml(config));
  print_estimate(config, arguments);
  return 0;
}

/// The name of a run without --name, before its number.
std::string base_name(const ParsedArguments& arguments) {
  if (arguments.has("from")) {
    const Path run = Path(arguments.get("from") + "/").lexically_normal().parent_path().filename();
    return run.empty() || run == "." || run == ".." ? "run" : run.string();
  }
  const std::string what = named_preset(arguments, "translate");
  return what.ends_with(".toml") ? Path(what).stem().string() : what;
}

/// The checkpoint of the run of --from that --from-checkpoint names; without that the best one.
Checkpoint open_from_checkpoint(const ParsedArguments& arguments) {
  const Path run = arguments.get("from");
  if (arguments.has("from-checkpoint")) return open_checkpoint(run, arguments.get("from-checkpoint"));
  return open_checkpoint(run, best_step(run) ? "best" : "last");
}

int run_train(const ParsedArguments& arguments) {
  check_modes(arguments);
  Config config = config_of(arguments);
  if (arguments.has("dry-run")) return print_plan(std::move(config), arguments);
  if (arguments.has("trace")) prepare_trace(arguments.get("trace"));
  std::optional<io::TemporaryFolder> temporary;  // the folder of a run that is removed at its end
  const std::string base = base_name(arguments);
  std::optional<Checkpoint> weights;  // weights of the run of --from
  if (arguments.has("from")) weights = open_from_checkpoint(arguments);
  Path run;  // the folder that this process has made
  const auto open = [&](int64_t processes) {
    if (!weights) widen_batch(config, processes);  // the settings of a run have the batch of all processes
    rounding_of(config.train.precision);  // fails, before there is a folder, where the device lacks it
    if (leaves_nothing(arguments)) temporary.emplace("fast-dev-run");
    RunFolder folder =
        RunFolder::create({.out = temporary ? temporary->path() : Path(arguments.get("out", "runs")),
                           .name = arguments.get("name"),
                           .base = base,
                           .command = arguments.command_line(),
                           .config = to_toml(config),
                           .write_contents = [&](const Path& new_run) {
                             if (weights) write_weights_from_run(new_run, *weights, arguments.get("from"));
                           }});
    run = folder.path();
    if (weights) weights = read_weights_from_run(run);
    return Opening{
        .config = std::move(config), .folder = std::move(folder), .weights_from_run = std::move(weights)};
  };
  return train_as_started(arguments, open, [&] {
    // A run that failed before its first checkpoint leaves no folder.
    if (!run.empty() && !RunFolder::elsewhere(run).begun() && !pretraining_begun(run)) io::remove_all(run);
  });
}

}  // namespace

Command command::train() {
  return {
      .name = "train",
      .about = "train a model: a preset, or a .toml file of settings (default: translate)",
      .positional = "PRESET|FILE",
      .positional_help = "a preset (heed list presets), or a .toml file of settings",
      .max_positional = 1,
      .options = with_machine_options(
          {recipe_option,
           {"from", "RUN",
            "settings and weights of a trained run in place of a preset: fine-tuning, with other settings "
            "and another --attention where given"},
           {"from-checkpoint", "WHICH",
            "checkpoint of the run of --from: best, last or a step (default: best)"},
           {"name", "NAME", "name of the run; numbered when not given"},
           {"out", "FOLDER", "folder of all runs (default: runs)"},
           {"dry-run", "", "print the settings and what the run would take, and stop"},
           {"json", "", "with --dry-run: only what it would take, as one JSON object"},
           {"fast-dev-run", "",
            "two steps of everything on few data, validation, test and report included, to see that it "
            "works; leaves nothing, unless --out or --name is given"},
           {"overfit", "N",
            "train on the same N batches again and again, without dropout and label smoothing, and say "
            "whether the model has learned them"},
           {"trace", "FILE",
            "write a timeline of steps 2 to 4 into this file: modules, ops, gradients, threads and memory, "
            "for chrome://tracing or Perfetto"},
           collective_timeout_option,
           quiet_option}),
      .settings = true,
      .run = run_train,
      .several_processes = true};
}

}  // namespace heed
