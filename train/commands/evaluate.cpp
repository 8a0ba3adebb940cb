// heed evaluate: the test scores of a run.
#include <cstdio>

#include "heed/core/io/files.h"
#include "heed/core/io/json.h"
#include "heed/train/commands/command_declarations.h"
#include "heed/train/commands/loaded_run.h"
#include "heed/train/metrics/baseline_scores.h"
#include "heed/train/metrics/score_name.h"

namespace heed {
namespace {

int run_evaluate(const ParsedArguments& arguments) {
  apply_machine(arguments);
  LoadedRun run = load_run(arguments.positional[0], arguments.get("checkpoint"), arguments.get("data"), true,
                           arguments.get("stride"), swap_of(arguments));
  apply_decoding(run.config, arguments);
  const Evaluation evaluation = run.config.task->test(*run.model, run.config.decode);
  if (arguments.has("json")) {
    Json out = Json::object({{"run", arguments.positional[0]}, {"step", run.checkpoint.step}});
    if (arguments.has("attention")) out.set("attention", arguments.get("attention"));
    if (arguments.has("cross-attention")) out.set("cross_attention", arguments.get("cross-attention"));
    if (arguments.has("layers")) out.set("layers", arguments.get("layers"));
    for (const auto& [name, value] : evaluation.scores.list) out.set(name, value);
    put_known(out, *run.config.task);
    io::print_data(out.dump() + "\n");
    return 0;
  }
  io::printf("%s, checkpoint of step %lld\n", arguments.positional[0].c_str(),
             static_cast<long long>(run.checkpoint.step));
  for (const std::string& line : transfer_words(run.transfer)) io::printf("  %s\n", line.c_str());
  for (const auto& [name, value] : evaluation.scores.list)
    io::printf("  %-15s %.4f\n", score_name(name).c_str(), value);
  for (const std::string& note : evaluation.notes) io::printf("  %s\n", note.c_str());
  return 0;
}

std::string test_data() {
  return "Test data are what training never saw. translate: the pairs held out for it. lm: the text of "
         "--test-path, else all of the\nvalidation text, which chose the checkpoint. mnist, lra: the test "
         "files in the folder of --data, else embedded ones. recall:\nsequences of their own.";
}

}  // namespace

Command command::evaluate() {
  std::vector<CommandOption> options{
      {"checkpoint", "WHICH", "best, last or a step (default: best)"},
      {"data", "PATH",
       "other data in place of the run's, in the form that heed train --data takes for its task; their test "
       "part is scored"},
      {"stride", "N", "of language models: new tokens a window, the others of it are context"}};
  for (const CommandOption& one : swap_options()) options.push_back(one);
  options.push_back({"json", "", "one JSON object"});
  return {"evaluate",
          "score a run on its test data",
          "RUN",
          "the folder of a run",
          1,
          1,
          with_machine(with_decoding(std::move(options))),
          false,
          run_evaluate,
          test_data};
}

}  // namespace heed
