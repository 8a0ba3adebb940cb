// Recipes for language models.
#include <array>

#include "train/preset_list.h"

namespace heed {
namespace {

constexpr std::array all{
    Preset{"lm", "lm", "a small character language model on embedded verse", R"(
[model]
width = 128
heads = 4
feed_forward = 512
layers = 2
max_length = 64
dropout = 0.0
attention_dropout = 0.0
activation = "gelu"
position = "learned"
init = "normal"
tie = "output"
scale_embedding = false
[train]
steps = 1000
batch = 16
smoothing = 0.0
schedule = "cosine"
rate = 2e-3
warmup = 100
final_share = 0.1
beta2 = 0.99
epsilon = 1e-8
decay = 0.1
clip = 1.0
)"},
    Preset{"shakespeare-cpu", "lm",
           "nanoGPT's CPU recipe for Tiny Shakespeare; give --data tinyshakespeare.txt", R"(
[model]
width = 128
heads = 4
feed_forward = 512
layers = 4
max_length = 64
dropout = 0.0
attention_dropout = 0.0
activation = "gelu"
position = "learned"
init = "normal"
tie = "output"
scale_embedding = false
attention_bias = false
feed_forward_bias = false
norm_bias = false
[train]
steps = 2000
batch = 12
smoothing = 0.0
schedule = "cosine"
rate = 1e-3
warmup = 100
final_share = 0.1
beta2 = 0.99
epsilon = 1e-8
decay = 0.1
clip = 1.0
validate_every = 500
)"},
    Preset{"shakespeare", "lm", "nanoGPT's GPU recipe for Tiny Shakespeare; give --data tinyshakespeare.txt",
           R"(
[model]
width = 384
heads = 6
feed_forward = 1536
layers = 6
max_length = 256
dropout = 0.2
attention_dropout = 0.2
[data]
estimate = 200
[train]
steps = 5000
batch = 64
validate_every = 250
)",
           "shakespeare-cpu"},
    Preset{"wikitext2", "lm",
           "byte pairs of WikiText-2; give --data, --validation-path and --test-path its three files", R"(
[model]
width = 256
heads = 8
feed_forward = 1024
max_length = 128
dropout = 0.2
attention_dropout = 0.1
[data]
tokenizer = "byte_pair"
vocabulary = 8192
[train]
steps = 0
epochs = 10
batch = 32
warmup = 200
validate_every = 0
)",
           "shakespeare-cpu"},
};

}  // namespace

std::span<const Preset> preset::language() { return all; }

}  // namespace heed
