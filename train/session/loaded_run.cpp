// Opening runs.
#include "heed/train/session/loaded_run.h"

#include <algorithm>
#include <cstdio>
#include <optional>

#include "heed/core/io/files.h"
#include "heed/train/progress/progress.h"

namespace heed {

LoadedRun load_run(const Path& run, const std::string& which, const std::string& path, bool with_data,
                   const std::string& stride, const AttentionSwap& swap, OtherData other,
                   Progress* progress) {
  RunFolder folder = RunFolder::look(run);
  Config config = read_config(io::read(folder.config()), folder.config().string());
  std::string wanted = which;
  if (wanted.empty()) wanted = best_step(run) ? "best" : "last";
  Checkpoint checkpoint = open_checkpoint(run, wanted);
  swap.apply(config);
  if (with_data) {
    if (!path.empty()) {
      config.set("data.path", path, "--data: ", SetBy::command_line);
      if (other == OtherData::test) config.task->test_on(path);
    }
    if (!stride.empty()) config.set("data.stride", stride, "--stride: ", SetBy::command_line);
    std::optional<ProgressScope> shown;
    if (progress != nullptr) shown.emplace(*progress, "data");
    config.task->load(config, tokenizer_files(checkpoint), [](const std::string&) {});
  } else {
    config.task->load_artifacts(config, tokenizer_files(checkpoint));
  }
  Rng rng(static_cast<uint64_t>(config.train.seed));
  auto model = new_model(config, rng);
  WeightTransfer transfer;
  if (swap.any()) {
    transfer = transfer_weights(*model, checkpoint.file("model.safetensors"),
                                (checkpoint.folder / "model.safetensors").string());
  } else {
    load_bytes(*model, checkpoint.file("model.safetensors"),
               (checkpoint.folder / "model.safetensors").string());
  }
  return {std::move(folder), std::move(config), std::move(checkpoint), std::move(model), std::move(transfer)};
}

std::vector<std::string> transfer_words(const WeightTransfer& transfer) {
  std::vector<std::string> out;
  const auto list = [&](const char* what, const std::vector<std::string>& names) {
    if (names.empty()) return;
    std::string line =
        text(what, names.size() == 1 ? ", 1 tensor: " : text(", ", names.size(), " tensors: "));
    constexpr size_t most = 4;
    for (size_t i = 0; i < std::min(most, names.size()); ++i) line += (i > 0 ? ", " : "") + names[i];
    out.push_back(line + (names.size() > most ? ", ..." : ""));
  };
  list("initialised, since the run lacks them", transfer.initialised);
  list("left out, since the attention has none", transfer.unused);
  return out;
}

std::string other_data(const ParsedArguments& arguments) {
  if (arguments.has("data") && arguments.has("test-path"))
    fail("--data and --test-path mean the same here. Give one of them.");
  return arguments.get("data", arguments.get("test-path"));
}

Bf16Weights narrowed(Module& model, const ParsedArguments& arguments) {
  const std::string precision = arguments.get("precision", "f32");
  if (precision != "f32" && precision != "bf16")
    fail("--precision = ", precision, ". It must be f32 or bf16.");
  if (precision == "f32") return {};
  for (const Named& named : parameters(model)) {
    if (named.tensor->dtype() == DType::f64)
      fail("--precision bf16: this run keeps its weights in f64. Leave the option out.");
  }
  return narrow_weights(model);
}

CommandOption precision_option() {
  return {"precision", "TYPE", "f32; bf16: weights rounded, half the bytes read for a token (default: f32)"};
}

std::vector<std::string> input_lines(const std::vector<std::string>& words) {
  if (!words.empty()) return words;
  std::vector<std::string> lines;
  io::InputLines input;
  while (auto line = input.next()) lines.push_back(std::move(*line));
  return lines;
}

}  // namespace heed
