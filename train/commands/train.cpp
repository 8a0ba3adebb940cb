// heed train: a new run.
#include <cstdio>

#include "core/io.h"
#include "train/commands/preview.h"
#include "train/commands/session.h"
#include "train/commands/verbs.h"

namespace heed {
namespace {

int run(const Invocation& call) {
  const std::string what = named_preset(call, "translate");
  Config config = make_config(what);
  apply_settings(config, call);
  config.check();
  apply_machine(call);
  if (call.has("json") && !call.has("dry-run")) fail("train: --json is for --dry-run.");
  if (call.has("dry-run")) {
    if (call.has("json")) {
      print_estimate_json(config);
      return 0;
    }
    std::fputs(to_toml(config).c_str(), stdout);
    print_estimate(config);
    return 0;
  }
  const std::string base = what.ends_with(".toml") ? Path(what).stem().string() : what;
  RunFolder folder = RunFolder::create({.out = call.get("out", "runs"),
                                        .name = call.get("name"),
                                        .base = base,
                                        .command = call.command(),
                                        .config = to_toml(config)});
  try {
    return train_in(config, folder, std::nullopt, call);
  } catch (...) {
    // A run that failed before its first step has nothing to keep.
    if (!io::exists(folder.metrics()) || io::size(folder.metrics()) == 0) io::remove_all(folder.path());
    throw;
  }
}

}  // namespace

Verb verb::train() {
  return {"train",
          "train a model: a preset, or a .toml file of settings (default: translate)",
          "PRESET|FILE",
          0,
          1,
          with_machine({recipe_option,
                        {"name", "NAME", "name of the run; numbered when not given"},
                        {"out", "FOLDER", "folder of all runs (default: runs)"},
                        {"dry-run", "", "print the settings and what the run would take, and stop"},
                        {"json", "", "with --dry-run: only what it would take, as one JSON object"},
                        {"quiet", "", "say nothing while it works"}}),
          true,
          run};
}

}  // namespace heed
