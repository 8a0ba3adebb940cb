// The rows of the training benchmark, and presets with their data.
#include "heed/train/bench/workload.h"

#include <algorithm>
#include <array>

#include "heed/train/bench/models.h"

namespace heed::bench {
namespace {

constexpr const char* baby = R"(
task = "lm"
[model]
d_model = 128
heads = 4
d_ff = 512
layers = 4
max_length = 64
dropout = 0.0
attention_dropout = 0.0
activation = "gelu"
position = "learned"
init = "normal"
tie_embeddings = "output"
scale_embedding = false
attention_bias = false
feed_forward_bias = false
[train]
max_steps = 1
batch_size = 12
label_smoothing = 0.0
schedule = "constant"
learning_rate = 1e-3
warmup_steps = 0
beta2 = 0.99
epsilon = 1e-8
weight_decay = 0.1
grad_clip = 1.0
)";

constexpr const char* baby_dropout = R"(
[model]
dropout = 0.2
attention_dropout = 0.2
)";

constexpr const char* gpt = R"(
[model]
d_model = 384
heads = 6
d_ff = 1536
layers = 6
max_length = 256
[train]
batch_size = 8
)";

constexpr const char* gpt_dropout = R"(
[model]
d_model = 384
heads = 6
d_ff = 1536
layers = 6
max_length = 256
dropout = 0.2
attention_dropout = 0.2
[train]
batch_size = 8
)";

constexpr const char* lra = R"(
task = "mnist"
[model]
d_model = 64
heads = 2
d_ff = 128
layers = 2
max_length = 2000
dropout = 0.0
attention_dropout = 0.0
activation = "gelu"
position = "learned"
init = "normal"
scale_embedding = false
attention_bias = true
[train]
max_steps = 1
batch_size = 8
label_smoothing = 0.0
schedule = "constant"
learning_rate = 1e-3
warmup_steps = 0
beta2 = 0.999
epsilon = 1e-8
weight_decay = 0.01
grad_clip = 0.0
)";

constexpr const char* lra_fastmax2 = R"(
[attention]
encoder = fastmax:p=2
)";

constexpr const char* pixels = R"(
[model]
d_model = 32
heads = 2
d_ff = 128
layers = 2
max_length = 784
)";

constexpr const char* patches = R"(
[model]
d_model = 64
heads = 4
d_ff = 256
layers = 4
max_length = 49
[train]
batch_size = 64
)";

constexpr std::array all{
    Row{"baby", "language model, 4 layers, 4 heads, width 128, context 64, batch 12", baby, "",
        language_model},
    Row{"baby-dropout", "the same with dropout 0.2", baby, baby_dropout, language_model},
    Row{"gpt-6x6x384", "language model, 6 layers, 6 heads, width 384, context 256, batch 8", baby, gpt,
        language_model},
    Row{"gpt-6x6x384-dropout", "the same with dropout 0.2", baby, gpt_dropout, language_model},
    Row{"translator-literal",
        "the model of translate-conti, 8 sentences padded to 350; logits of padding too", "translate-conti",
        "", translator_literal},
    Row{"translator-padded", "the same batches as heed trains on them: logits of real targets only",
        "translate-conti", "", translator_padded},
    Row{"translator-real", "the same model and sentences, 8 of like length a batch, padded to the longest",
        "translate-conti", "", translator_real},
    Row{"lra", "classifier of 2000 tokens, 2 layers, 2 heads, width 64, batch 8", lra, "", token_classifier},
    Row{"lra-fastmax2", "the same with Fastmax of the second order", lra, lra_fastmax2, token_classifier},
    Row{"pixels", "classifier of 784 tokens, 2 layers, 2 heads, width 32, batch 8", lra, pixels,
        token_classifier},
    Row{"patches", "classifier of 49 vectors, 4 layers, 4 heads, width 64, batch 64", lra, patches,
        patch_classifier},
};

/// Overrides a config by TOML settings.
void overlay(Config& config, const std::string& settings, const std::string& where) {
  std::string group;
  size_t at = 0;
  while (at < settings.size()) {
    const size_t end = std::min(settings.find('\n', at), settings.size());
    const std::string line = settings.substr(at, end - at);
    at = end + 1;
    if (line.starts_with("[")) {
      group = line.substr(1, line.find(']') - 1);
    } else if (const size_t equals = line.find(" = "); equals != std::string::npos) {
      config.set(group + "." + line.substr(0, equals), line.substr(equals + 3), where);
    }
  }
}

Config config_of(const Row& row) {
  const std::string base = row.base;
  Config config = base.find('\n') == std::string::npos ? make_config(base) : read_config(base, row.name);
  overlay(config, row.settings, std::string("shape ") + row.name);
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
