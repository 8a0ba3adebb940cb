// heed evaluate: the test scores of a run.
#include <cstdio>

#include "core/json.h"
#include "train/commands/loaded_run.h"
#include "train/commands/verbs.h"

namespace heed {
namespace {

int run(const Invocation& call) {
  apply_machine(call);
  LoadedRun run = load_run(call.words[0], call.get("ckpt"), call.get("data"), true, call.get("stride"));
  apply_decoding(run.config, call);
  const Evaluation evaluation = run.config.task->test(*run.model, run.config.decode);
  if (call.has("json")) {
    Json out = Json::object({{"run", call.words[0]}, {"step", run.checkpoint.step}});
    for (const auto& [name, value] : evaluation.scores.list) out.set(name, value);
    std::puts(out.dump().c_str());
    return 0;
  }
  std::printf("%s, checkpoint of step %lld\n", call.words[0].c_str(),
              static_cast<long long>(run.checkpoint.step));
  for (const auto& [name, value] : evaluation.scores.list) std::printf("  %-13s %.4f\n", name.c_str(), value);
  for (const std::string& note : evaluation.notes) std::printf("  %s\n", note.c_str());
  return 0;
}

}  // namespace

Verb verb::evaluate() {
  return {"evaluate",
          "score a run on its test data",
          "RUN",
          1,
          1,
          with_machine(with_decoding(
              {{"ckpt", "WHICH", "best, last or a step (default: best)"},
               {"data", "PATH", "score on this data instead of the run's (held out by the same rule)"},
               {"stride", "N", "of language models: new tokens a window, the others of it are context"},
               {"json", "", "one JSON object"}})),
          false,
          run};
}

}  // namespace heed
