// heed resume: a run goes on as if it had never stopped.
#include "core/io.h"
#include "train/commands/members.h"
#include "train/commands/verbs.h"

namespace heed {
namespace {

Opening open(const Invocation& call) {
  const Path path = call.words[0];
  RunFolder folder = RunFolder::resume(path, call.command());
  Config config = read_config(io::read(folder.config()), folder.config().string());
  if (call.has("steps")) {
    config.train.epochs = 0;
    config.set("train.steps", call.get("steps"), "--steps: ");
  }
  if (call.has("time-limit")) config.set("train.time_limit", call.get("time-limit"), "--time-limit: ");
  if (call.has("patience")) config.set("train.patience", call.get("patience"), "--patience: ");
  if (call.has("on-nan")) config.set("train.on_nan", call.get("on-nan"), "--on-nan: ");
  if (call.has("data")) config.set("data.path", call.get("data"), "--data: ");
  config.check();
  std::optional<Checkpoint> from;
  if (!list_checkpoints(path).empty())  // else it was stopped before its first
    from = open_checkpoint(path, call.get("ckpt", "last"));
  if (from && call.has("steps") && config.train.steps < from->step) {
    fail("resume: --steps ", config.train.steps, ", but the run has ", from->step, " steps at ", from->folder,
         ". Give more steps than that, or an earlier checkpoint: --ckpt.");
  }
  return {std::move(config), std::move(folder), std::move(from)};
}

int run(const Invocation& call) {
  return train_as_started(call, [&](int64_t) { return open(call); });
}

}  // namespace

Verb verb::resume() {
  return {"resume",
          "go on with a run that was stopped, or make a finished one longer",
          "RUN",
          "the folder of a run",
          1,
          1,
          with_machine({{"steps", "N", "total steps, to make the run longer"},
                        {"time-limit", "SECONDS", "another time limit, counted over all sittings"},
                        {"patience", "N", "validations without a better one before it stops; 0: never"},
                        {"on-nan", "WORD", "stop or skip, at a step whose loss or gradient is not finite"},
                        {"ckpt", "WHICH", "last, best or a step to go on from (default: last)"},
                        {"data", "PATH", "where the same data lies now"},
                        collective_timeout_option,
                        {"quiet", "", "say nothing while it works"}}),
          false,
          run};
}

}  // namespace heed
