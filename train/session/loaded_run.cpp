// Opens runs: settings, task, data and weights.
#include "heed/train/session/loaded_run.h"

#include <algorithm>
#include <optional>

#include "heed/core/io/files.h"
#include "heed/core/io/safetensors.h"
#include "heed/nn/init.h"
#include "heed/train/run/checkpoint_tokenizers.h"
#include "heed/train/session/setting_options.h"

namespace heed {

LoadedRun load_run(const Path& run, const LoadOptions& options) {
  RunFolder folder = RunFolder::look(run);
  Config config = read_config(io::read(folder.config()), folder.config().string());
  std::string wanted = options.checkpoint;
  if (wanted.empty()) wanted = best_step(run) ? "best" : "last";
  Checkpoint checkpoint = open_checkpoint(run, wanted, HeldFiles::all_but_tensors);
  // Opened at once: a training that goes on may remove the checkpoint while data are loaded.
  const SafeTensors weights = SafeTensors::open(checkpoint.path("model.safetensors"));
  options.swap.apply(config);
  if (options.with_data) {
    if (!options.data.empty()) {
      config.set("data.path", options.data, "--data: ", SetBy::command_line);
      if (options.is_test) config.task->test_on(options.data);
    }
    if (!options.stride.empty()) config.set("data.stride", options.stride, "--stride: ", SetBy::command_line);
    std::optional<ProgressScope> shown;
    if (options.progress != nullptr) shown.emplace(*options.progress, "data");
    config.task->load(config, tokenizer_files(checkpoint), [](const std::string&) {});
  } else {
    config.task->load_artifacts(config, tokenizer_files(checkpoint));
  }
  Rng rng(static_cast<uint64_t>(config.train.seed));
  std::unique_ptr<Module> model;
  WeightTransfer transfer;
  if (options.swap.any()) {
    model = new_model(config, rng);
    transfer = transfer_weights(*model, weights);
  } else {
    const SkipInit skips;
    model = new_model(config, rng);
    load(*model, weights);
  }
  return {std::move(folder), std::move(config), std::move(checkpoint), std::move(model), std::move(transfer)};
}

std::vector<std::string> transfer_words(const WeightTransfer& transfer) {
  std::vector<std::string> out;
  const auto list = [&](const char* what, const std::vector<std::string>& names) {
    constexpr size_t max_names = 4;
    if (names.empty()) return;
    std::string line =
        text(what, names.size() == 1 ? ", 1 tensor: " : text(", ", names.size(), " tensors: "));
    for (size_t i = 0; i < std::min(max_names, names.size()); ++i) line += (i > 0 ? ", " : "") + names[i];
    out.push_back(line + (names.size() > max_names ? ", ..." : ""));
  };
  list("initialised, since the run lacks them", transfer.initialised);
  list("left out, since the attention has none", transfer.unused);
  return out;
}

void apply_decoding(Config& config, const ParsedArguments& arguments) {
  set_by_option(config, "decode.beam_size", arguments, "beam-size");
  set_by_option(config, "decode.length_penalty", arguments, "length-penalty");
  config.check();
}

std::vector<CommandOption> with_decoding_options(std::vector<CommandOption> options) {
  options.push_back({"beam-size", "N", "beam size; 1: greedy"});
  options.push_back({"length-penalty", "ALPHA", "exponent of the length normalisation of beams"});
  return options;
}

std::string other_data(const ParsedArguments& arguments) {
  if (arguments.has("data") && arguments.has("test-path"))
    fail("--data and --test-path mean the same here. Give one of them.");
  return arguments.get("data", arguments.get("test-path"));
}

NarrowWeights narrowed(Module& model, const ParsedArguments& arguments) {
  const std::string precision = arguments.word("precision", {"f32", "bf16", "q8_0"}, "f32");
  if (precision == "f32") return {};
  for (const Named& named : parameters(model)) {
    if (named.tensor->dtype() == DType::f64)
      fail("--precision " + precision + ": this run keeps its weights in f64. Leave the option out.");
  }
  NarrowWeights narrow = narrow_weights(model, precision == "bf16" ? WeightFormat::bf16 : WeightFormat::q8_0);
  for (const Named& named : parameters(model)) {
    if (narrow.find(*named.tensor) != nullptr) return narrow;
  }
  fail("--precision " + precision + ": no matrix of this run can be kept so. Rows of q8_0 are blocks of " +
       "32 numbers, so model.d_model or model.d_ff must be a multiple of 32. Give f32 or bf16.");
}

}  // namespace heed
