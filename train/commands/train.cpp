// heed train: a new run.
#include <cstdio>

#include "heed/core/distributed/mpi.h"
#include "heed/core/io/files.h"
#include "heed/train/commands/command_list.h"
#include "heed/train/commands/distributed_session.h"
#include "heed/train/commands/preview.h"
#include "heed/train/loop/pretraining.h"

namespace heed {
namespace {

Config config_of(const ParsedArguments& call) {
  Config config = make_config(named_preset(call, "translate"));
  apply_settings(config, call);
  config.check();
  return config;
}

int show_plan(Config config, const ParsedArguments& call) {
  if (const auto started = launch_info()) {
    fail("train: --dry-run is the work of one process, but ", started->by, " started ", started->size,
         ". Start it without ", started->by, ".");
  }
  apply_machine(call);
  if (call.has("json")) {
    print_estimate_json(config, call);
    return 0;
  }
  io::print_data(to_toml(config));
  print_estimate(config, call);
  return 0;
}

int run(const ParsedArguments& call) {
  if (call.has("json") && !call.has("dry-run")) fail("train: --json is for --dry-run.");
  Config config = config_of(call);
  if (call.has("dry-run")) return show_plan(std::move(config), call);
  const std::string what = named_preset(call, "translate");
  const std::string base = what.ends_with(".toml") ? Path(what).stem().string() : what;
  Path made;  // by this process
  const auto open = [&](int64_t processes) {
    widen_batch(config, processes);
    rounding_of(config.train.precision);  // refuses what this device has not, before there is a folder
    RunFolder folder = RunFolder::create({.out = call.get("out", "runs"),
                                          .name = call.get("name"),
                                          .base = base,
                                          .command = call.command(),
                                          .config = to_toml(config)});
    made = folder.path();
    return Opening{std::move(config), std::move(folder)};
  };
  return train_as_started(call, open, [&] {
    // A run that failed before it had anything to show has nothing to keep.
    if (!made.empty() && !RunFolder::elsewhere(made).begun() && !pretraining_begun(made))
      io::remove_all(made);
  });
}

}  // namespace

Command command::train() {
  return {"train",
          "train a model: a preset, or a .toml file of settings (default: translate)",
          "PRESET|FILE",
          "a preset (heed list presets), or a .toml file of settings",
          0,
          1,
          with_machine({recipe_option,
                        {"name", "NAME", "name of the run; numbered when not given"},
                        {"out", "FOLDER", "folder of all runs (default: runs)"},
                        {"dry-run", "", "print the settings and what the run would take, and stop"},
                        {"json", "", "with --dry-run: only what it would take, as one JSON object"},
                        collective_timeout_option,
                        {"quiet", "", "print nothing while working"}}),
          true,
          run,
          nullptr,
          true};
}

}  // namespace heed
