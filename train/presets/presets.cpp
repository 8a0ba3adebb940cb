// Named recipes: the list, and those for translation and recall.
#include <algorithm>
#include <array>
#include <vector>

#include "attention/spec.h"
#include "train/lra_presets.h"
#include "train/preset_list.h"

namespace heed {
namespace {

constexpr std::array translation{
    Preset{"translate", "translate", "English to Italian on the embedded phrasebook: the first five minutes",
           R"(
[model]
width = 128
heads = 4
feed_forward = 512
layers = 1
max_length = 64
dropout = 0.0
attention_dropout = 0.0
tie = "output"
[data]
tokenizer = "word"
minimum = 1
validation = 500
test = 500
[train]
steps = 1200
batch_tokens = 1536
smoothing = 0.05
schedule = "cosine"
rate = 3e-3
warmup = 150
beta2 = 0.98
clip = 1.0
validate_every = 200
)"},
    Preset{"translate-seq2seq", "translate",
           "the same phrasebook by recurrent networks with Bahdanau's attention", R"(
[model]
kind = "seq2seq"
cell = "lstm"
wiring = "bahdanau"
width = 128
heads = 1
layers = 1
max_length = 64
dropout = 0.0
attention_dropout = 0.0
tie = "output"
[attention]
cross = "additive"
[data]
tokenizer = "word"
minimum = 1
validation = 500
test = 500
[train]
steps = 1200
batch_tokens = 1536
smoothing = 0.05
schedule = "cosine"
rate = 3e-3
warmup = 150
beta2 = 0.98
clip = 1.0
validate_every = 200
)"},
    Preset{"translate-small", "translate",
           "our 1-block model for real text: joint 8k subwords, tied tables, length buckets", R"(
[model]
width = 256
heads = 8
feed_forward = 1024
layers = 1
max_length = 256
dropout = 0.1
attention_dropout = 0.0
tie = "all"
[data]
tokenizer = "unigram"
vocabulary = 8000
joint = true
[train]
epochs = 10
batch_tokens = 4096
smoothing = 0.1
schedule = "cosine"
rate = 2e-3
warmup = 300
beta2 = 0.98
decay = 0.01
clip = 1.0
)"},
    Preset{"translate-conti", "translate",
           "the published opus_books recipe to the letter: 1 block, width 512, words", R"(
[model]
width = 512
heads = 8
feed_forward = 2048
layers = 1
max_length = 350
dropout = 0.1
attention_dropout = 0.1
activation = "relu"
norm = "pre"
norm_scale = "deviation"
norm_epsilon = 1e-6
position = "sinusoid"
init = "xavier"
tie = "none"
scale_embedding = true
attention_bias = false
output_bias = true
[data]
tokenizer = "word"
blanks = true
minimum = 2
most = 30000
vocabulary_on_all = true
distinct = false
longest = 0
validation = 3234
test = 0
buckets = false
fixed_length = 350
[train]
epochs = 20
batch = 8
smoothing = 0.1
optimizer = "adam"
schedule = "constant"
rate = 1e-4
warmup = 0
beta1 = 0.9
beta2 = 0.999
epsilon = 1e-9
decay = 0.0
clip = 0.0
)"},
};

constexpr std::array recall{
    Preset{"recall", "recall", "packed recall: does this attention find things? ten seconds say so", R"(
[model]
width = 64
heads = 2
feed_forward = 128
layers = 2
max_length = 64
dropout = 0.0
attention_dropout = 0.0
activation = "gelu"
position = "none"
init = "xavier"
scale_embedding = false
[train]
steps = 300
batch = 128
smoothing = 0.0
schedule = "cosine"
rate = 2e-3
warmup = 100
final_share = 0.02
beta2 = 0.98
epsilon = 1e-8
decay = 0.01
clip = 1.0
)"},
};

}  // namespace

std::span<const Preset> presets() {
  static const std::vector<Preset> all = [] {
    std::vector<Preset> list;
    for (const std::span<const Preset> group :
         {std::span<const Preset>(translation), preset::language(), preset::digits(),
          std::span<const Preset>(recall), lra_presets()})
      list.insert(list.end(), group.begin(), group.end());
    return list;
  }();
  return all;
}

std::string with_recipe(const std::string& preset, const std::string& recipe) {
  std::vector<std::string> known;
  const std::string start = preset + "-";
  for (const Preset& one : presets()) {
    const std::string name = one.name, about = one.about;
    if (name == preset && about.starts_with("recipe "))
      known.push_back(about.substr(7, about.find(':') - 7));
    else if (name.starts_with(start) && about.starts_with("recipe "))
      known.push_back(name.substr(start.size()));
  }
  if (known.empty()) {
    fail("--recipe ", shown(recipe), ": the preset ", shown(preset),
         " has no recipes; those of the Long Range Arena have, such as lra-listops.");
  }
  for (const std::string& one : known) {
    if (one == recipe) return one == known.front() ? preset : start + one;
  }
  fail("--recipe ", shown(recipe), " is unknown.", suggestion(recipe, known));
}

}  // namespace heed
