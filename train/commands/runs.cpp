// heed runs: renames and removes runs.
#include <set>

#include "heed/core/io/files.h"
#include "heed/train/commands/command_declarations.h"
#include "heed/train/run/run_folder.h"
#include "heed/train/run/run_renaming.h"

namespace heed {
namespace {

int rename_a_run(const ParsedArguments& arguments) {
  if (arguments.positional.size() != 3)
    fail("heed runs rename takes RUN NAME: a run's folder, and its new name without a folder.");
  const RenamedRun renamed =
      rename_run(arguments.positional[1], arguments.positional[2], arguments.command_line());
  io::print(text("now ", renamed.path.string(), "\n"));
  for (const Path& run : renamed.updated)
    io::print(text("  ", run.string(), " began from its weights: its manifest has the new name\n"));
  return 0;
}

/// Locks all runs before the first is removed, so that all or none are refused.
int remove_runs(const ParsedArguments& arguments) {
  std::vector<RunFolder> runs;
  std::set<Path> named;
  for (size_t i = 1; i < arguments.positional.size(); ++i) {
    const Path run = arguments.positional[i];
    if (!named.insert((run / "").lexically_normal()).second)
      fail("runs remove: ", run, " is named twice. Name it once.");
    runs.push_back(RunFolder::hold(run, arguments.command_line()));
  }
  for (RunFolder& run : runs) {
    const std::string name = run.path().string();
    std::move(run).remove();
    io::print(text("removed ", name, "\n"));
  }
  return 0;
}

int run_runs(const ParsedArguments& arguments) {
  return known_word("runs:", arguments.positional[0], {"rename", "remove"}) == "rename"
             ? rename_a_run(arguments)
             : remove_runs(arguments);
}

}  // namespace

Command command::runs() {
  return {.name = "runs",
          .about =
              "rename a run, or remove runs for good and without asking; a run in use is refused (heed list "
              "runs lists them)",
          .positional = "rename|remove RUN [NAME|RUN...]",
          .positional_help =
              "rename RUN NAME: a run's folder, and its new name; remove RUN...: the folders of the runs to "
              "remove",
          .min_positional = 2,
          .max_positional = 1000,
          .run = run_runs};
}

}  // namespace heed
