// The rows of the training benchmark, and presets with their data.
#include "heed/train/bench/workload.h"

#include <algorithm>
#include <array>

#include "heed/core/io/embedded_files.h"
#include "heed/train/bench/models.h"

namespace heed::bench {
namespace {

constexpr std::array all{
    Row{"baby", "language model, 4 layers, 4 heads, width 128, context 64, batch 12", "", character_model},
    Row{"baby-dropout", "baby with dropout 0.2", "", character_model},
    Row{"gpt-6x6x384", "language model, 6 layers, 6 heads, width 384, context 256, batch 8", "",
        character_model},
    Row{"gpt-6x6x384-dropout", "gpt-6x6x384 with dropout 0.2", "", character_model},
    Row{"gpt2-124m",
        "GPT-2's smallest: 12 layers, 12 heads, width 768, context 1024, 50,304 tokens, batch 16; only where "
        "it is named",
        "", gpt2_model, /*only_named=*/true},
    Row{"translator-literal",
        "the model of translate-conti, 8 sentences padded to 350; logits of padding too", "translate-conti",
        translator_literal},
    Row{"translator-padded", "translator-literal as heed trains it: logits of real targets only",
        "translate-conti", translator_padded},
    Row{"translator-real", "translator-padded with 8 sentences of like length a batch, padded to the longest",
        "translate-conti", translator_real},
    Row{"lra", "classifier of 2000 tokens, 2 layers, 2 heads, width 64, batch 8", "", token_classifier},
    Row{"lra-fastmax2", "lra with Fastmax of the second order", "", token_classifier},
    Row{"pixels", "classifier of 784 tokens, 2 layers, 2 heads, width 32, batch 8", "", token_classifier},
    Row{"patches", "classifier of 49 vectors, 4 layers, 4 heads, width 64, batch 64", "", patch_classifier},
};

Config config_of(const Row& row) {
  const std::string preset = row.preset, path = text("train/bench/workloads/", row.name, ".toml");
  Config config = preset.empty() ? read_config(std::string(embedded_file(path)), path) : make_config(preset);
  config.preset = row.name;
  return config;
}

/// A preset with its own task and data. Its steps are a sample of an epoch, few enough to time repeatedly.
Workload of_task(std::shared_ptr<Config> config) {
  config->task->load(*config, {}, [](const std::string&) {});
  Rng rng(static_cast<uint64_t>(config->train.seed));
  Workload work;
  work.model = config->task->model(*config, rng);
  const int64_t batches = config->task->plan(0);
  work.period = std::min<int64_t>(batches, 16);
  Module* model = work.model.get();
  work.batch = [config, batches, period = work.period](int64_t step) {
    return config->task->batch(step % period * batches / period);
  };
  work.loss = [config, model](const Batch& batch, const ForwardContext& context) {
    return config->task->loss(*model, batch, context);
  };
  work.tokens = [batch = work.batch](int64_t step) { return static_cast<double>(batch(step).tokens); };
  work.config = config;
  return work;
}

}  // namespace

std::span<const Row> rows() { return all; }

void check_name(const std::string& name, const char* part) {
  std::vector<std::string> known;
  for (const Row& row : rows()) known.emplace_back(row.name);
  for (const Preset& preset : presets()) known.emplace_back(preset.name);
  if (name.ends_with(".toml") || std::find(known.begin(), known.end(), name) != known.end()) return;
  fail("bench ", part, ": '", name, "' is unknown.", suggestion(name, known), " A .toml file works too.");
}

Workload workload(const std::string& name, const ParsedArguments& arguments) {
  check_name(name, "train");
  const auto row =
      std::find_if(rows().begin(), rows().end(), [&](const Row& one) { return name == one.name; });
  auto config = std::make_shared<Config>(row == rows().end() ? make_config(name) : config_of(*row));
  apply_settings(*config, arguments);
  config->check();
  return row == rows().end() ? of_task(std::move(config)) : row->make(std::move(config));
}

}  // namespace heed::bench
