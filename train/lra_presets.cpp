// The recipes google, nystrom, skyformer, tiny and best for each task of the Long Range Arena.
#include "train/lra_presets.h"

#include <algorithm>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace heed {
namespace {

// google: the published JAX configurations (google-research/long-range-arena, lra_benchmarks/*/configs).
// rsqrt's peak is base / sqrt(warm-up). Queries, keys and values have half the width of the model on Image
// and Pathfinder (qkv_dim), which is head_width times heads here.
constexpr const char* google = R"(
[model]
dropout = 0.1
attention_dropout = 0.1
activation = "gelu_tanh"
norm_epsilon = 1e-6
position = "sinusoid"
init = "xavier"
embedding_deviation = 1.0
scale_embedding = false
[data]
pool = "first"
buckets = false
[train]
smoothing = 0.0
schedule = "rsqrt"
beta2 = 0.98
epsilon = 1e-9
decay = 0.1
clip = 0.0
)";

// nystrom and skyformer: one model for all tasks (mlpen/Nystromformer, LRA/code/lra_config.py;
// pkuzengqi/Skyformer, src/config.py and models): 2 blocks of width 64.
constexpr const char* ports = R"(
[model]
width = 64
heads = 2
feed_forward = 128
layers = 2
dropout = 0.1
attention_dropout = 0.1
activation = "gelu"
position = "learned"
init = "fan_in"
embedding_deviation = 0.02
scale_embedding = false
attention_bias = true
[data]
pool = "mean"
mean_over = "padded"
head = 128
buckets = false
[train]
smoothing = 0.0
schedule = "one_cycle"
beta2 = 0.999
epsilon = 1e-6
decay = 0.0
clip = 0.0
)";

// best: what is known to work better, without pre-training: the sizes of "Never train from scratch" (Amos et
// al. 2024, arXiv 2310.02980; IdoAmos/not-from-scratch), rotary positions, a mean over real tokens.
constexpr const char* best = R"(
[model]
dropout = 0.0
attention_dropout = 0.0
activation = "gelu"
position = "rope"
init = "xavier"
scale_embedding = false
[data]
pool = "mean"
mean_over = "real"
[train]
smoothing = 0.0
schedule = "cosine"
final_share = 0.1
beta2 = 0.98
epsilon = 1e-8
clip = 1.0
)";

// tiny: minutes on two cores.
constexpr const char* tiny = R"(
[model]
width = 64
heads = 2
feed_forward = 128
layers = 2
dropout = 0.0
attention_dropout = 0.0
activation = "gelu"
position = "learned"
init = "xavier"
scale_embedding = false
[data]
pool = "mean"
mean_over = "real"
head = 128
[train]
smoothing = 0.0
schedule = "cosine"
rate = 1e-3
warmup = 100
final_share = 0.02
beta2 = 0.98
epsilon = 1e-8
decay = 0.01
clip = 1.0
batch = 128
)";

/// What the recipes of this name set for all tasks.
std::string base_of(std::string_view recipe) {
  if (recipe == "google") return google;
  if (recipe == "best") return best;
  return recipe == "tiny" ? tiny : ports;
}

/// A base whose keys the recipe's own lines (with dotted names) replace or join, group by group.
std::string merged(const std::string& base, const std::string& more) {
  std::vector<std::pair<std::string, std::string>> settings;
  std::string group;
  for (const std::string& all : {base, "\n[]\n" + more}) {
    for (size_t at = 0; at < all.size();) {
      const size_t end = std::min(all.find('\n', at), all.size());
      const std::string line = all.substr(at, end - at);
      at = end + 1;
      if (line.starts_with('[')) group = line.substr(1, line.size() - 2);
      const size_t equals = line.find(" = ");
      if (equals == std::string::npos) continue;
      const std::string key = (group.empty() ? "" : group + ".") + line.substr(0, equals);
      std::erase_if(settings, [&](const auto& one) { return one.first == key; });
      settings.emplace_back(key, line.substr(equals + 3));
    }
  }
  std::string out;
  for (const auto& [key, value] : settings) out += key + " = " + value + "\n";
  return out;
}

/// Presets with the texts they point to.
struct Made {
  Made() {
    for (const LraRecipe& recipe : lra_recipes()) {
      const std::string& name = texts.emplace_back(preset_of(recipe));
      const std::string& about = texts.emplace_back(text("recipe ", recipe.name, ": ", recipe.about));
      const std::string& settings = texts.emplace_back(merged(base_of(recipe.name), recipe.more));
      presets.push_back({name.c_str(), recipe.task, about.c_str(), settings.c_str()});
    }
  }
  std::deque<std::string> texts;  // whose addresses stay
  std::vector<Preset> presets;
};

// Whether a pixel of 0 is left out, where places come from, what is classified, and how much is read.
constexpr const char* choices[] = {"data.pixel_zero", "model.position", "data.pool",      "data.mean_over",
                                   "data.pair_head",  "data.longest",   "train.clip_each"};

}  // namespace

std::string preset_of(const LraRecipe& recipe) {
  return std::string_view(recipe.name) == "tiny" ? recipe.task : text(recipe.task, "-", recipe.name);
}

std::span<const char* const> lra_choices() { return choices; }

std::span<const Preset> lra_presets() {
  static const Made made;
  return made.presets;
}

}  // namespace heed
