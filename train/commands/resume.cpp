// heed resume: resumes a run; it ends bit-identical to an uninterrupted one.
#include "heed/core/io/files.h"
#include "heed/train/commands/command_declarations.h"
#include "heed/train/run/program_name.h"
#include "heed/train/run/resume_point.h"
#include "heed/train/session/distributed_session.h"
#include "heed/train/session/setting_options.h"

namespace heed {
namespace {

/// Opens and locks the run, and applies the options. Fails where its checkpoint cannot be resumed.
Opening open(const ParsedArguments& arguments) {
  const Path path = arguments.positional[0];
  RunFolder folder = RunFolder::resume(path, arguments.command_line());
  Config config = read_config(io::read(folder.config()), folder.config().string());
  if (arguments.has("steps")) config.train.epochs = 0;
  for (const auto& [key, option] : {std::pair{"train.max_steps", "steps"},
                                    {"train.time_limit", "time-limit"},
                                    {"train.patience", "patience"},
                                    {"train.stop_score", "stop-score"},
                                    {"train.on_nan", "on-nan"},
                                    {"data.path", "data"}})
    set_by_option(config, key, arguments, option);
  config.check();
  auto [checkpoint, weights_from_run] = resume_point(folder, arguments.get("checkpoint", "last"));
  if (checkpoint && !checkpoint->files.contains("state.json")) {
    fail("resume: ", checkpoint->folder,
         " holds weights alone, as heed import writes them: no training stopped there. ",
         "Train from them: ", program_name(), " train --from ", path, ".");
  }
  if (checkpoint && arguments.has("steps") && config.train.max_steps < checkpoint->step) {
    fail("resume: --steps ", config.train.max_steps, ", but the run has ", checkpoint->step, " steps at ",
         checkpoint->folder, ". Give more steps than that, or an earlier checkpoint: --checkpoint.");
  }
  return {std::move(config), std::move(folder), std::move(checkpoint), std::move(weights_from_run)};
}

int run_resume(const ParsedArguments& arguments) {
  return train_as_started(arguments, [&](int64_t) { return open(arguments); });
}

}  // namespace

Command command::resume() {
  return {.name = "resume",
          .about = "resume a stopped run, or extend a finished one",
          .positional = "RUN",
          .positional_help = "the folder of a run",
          .min_positional = 1,
          .max_positional = 1,
          .options = with_machine_options(
              {{"steps", "N", "total steps, to make the run longer"},
               {"time-limit", "SECONDS", "another time limit, counted over all sessions"},
               {"patience", "N", "validations without improvement before training stops; 0: never"},
               {"stop-score", "SCORE", "validation score at which training stops; 0: never"},
               {"on-nan", "WORD", "stop or skip, at a step whose loss or gradient is not finite"},
               {"checkpoint", "WHICH", "last, best or a step to go on from (default: last)"},
               {"data", "PATH", "new path of the same data"},
               collective_timeout_option,
               quiet_option}),
          .run = run_resume,
          .several_processes = true};
}

}  // namespace heed
