// heed generate: a language model goes on with a text.
#include <cstdio>

#include "data/tokenizer.h"
#include "train/commands/loaded_run.h"
#include "train/commands/verbs.h"
#include "train/decode.h"

namespace heed {
namespace {

int run(const Invocation& call) {
  apply_machine(call);
  LoadedRun run = load_run(call.words[0], call.get("ckpt"), "", false);
  auto* model = dynamic_cast<DecoderOnly*>(run.model.get());
  if (model == nullptr)
    fail("generate: ", call.words[0], " is a run of the task ", run.config.task_name,
         ", not of a language model.");
  const auto tokenizer = sealed_tokenizer(sealed_files(run.checkpoint), "text");
  if (!tokenizer) fail(Fault::data, "generate: the checkpoint holds no tokenizer.");
  SampleOptions options;
  for (const OptionText& option : options_of(options)) {
    std::string dashed = option.name;
    for (char& c : dashed) c = c == '_' ? '-' : c;
    if (call.has(dashed)) set_option(options, option.name, call.get(dashed), "--" + dashed + ": ");
  }
  const auto at_least_zero = [](const char* name, double value) {
    if (!(value >= 0)) fail("--", name, " = ", value, ". It must be at least 0.");
  };
  at_least_zero("temperature", options.temperature);
  at_least_zero("top-k", static_cast<double>(options.top_k));
  at_least_zero("tokens", static_cast<double>(options.tokens));
  const std::string prompt = call.get("prompt", "\n");
  const std::vector<int32_t> ids = tokenizer->encode(prompt);
  const int64_t samples = call.integer("samples", 1);
  if (samples < 1) fail("--samples = ", samples, ". It must be at least 1.");
  for (int64_t i = 0; i < samples; ++i) {
    Rng rng(static_cast<uint64_t>(call.integer("seed", 1) + i));
    if (call.has("prompt")) std::fputs(prompt.c_str(), stdout);
    sample(*model, ids, run.config.model.max_length, options, rng, [&](int32_t id) {
      std::fputs(tokenizer->decode(std::vector<int32_t>{id}).c_str(), stdout);
      std::fflush(stdout);
      return true;
    });
    std::puts(i + 1 < samples ? "\n---" : "");
  }
  return 0;
}

}  // namespace

Verb verb::generate() {
  return {
      "generate",
      "let a language model go on with a text",
      "RUN",
      1,
      1,
      with_machine({{"prompt", "TEXT", "what it goes on from (default: a new line)"},
                    {"temperature", "T", "divides the logits; 0: always the most probable (default: 0.8)"},
                    {"top-k", "K", "draw among the K most probable; 0: all (default: 200)"},
                    {"tokens", "N", "how many to make (default: 500)"},
                    {"samples", "N", "how many texts (default: 1)"},
                    {"seed", "N", "of the draws (default: 1)"},
                    {"ckpt", "WHICH", "best, last or a step (default: best)"}}),
      false,
      run};
}

}  // namespace heed
