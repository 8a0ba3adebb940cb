// Recipes for digits.
#include <array>

#include "train/preset_list.h"

namespace heed {
namespace {

constexpr std::array all{
    Preset{"mnist", "mnist", "handwritten digits as patches: embedded digits, or real ones through --data",
           R"(
[model]
width = 64
heads = 4
feed_forward = 128
layers = 2
max_length = 64
dropout = 0.0
attention_dropout = 0.0
activation = "gelu"
position = "learned"
init = "xavier"
scale_embedding = false
[train]
epochs = 2
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
    // The published program starts every matrix by Xavier's rule, the 50 x 96 table of positions too: a
    // deviation of sqrt(2 / 146).
    Preset{"mnist-fast", "mnist",
           "the published model of FAST: 4 x 4 patches, class token, 6 blocks of width 96",
           R"(
[model]
width = 96
heads = 4
feed_forward = 192
layers = 6
max_length = 64
dropout = 0.0
attention_dropout = 0.0
activation = "gelu"
position = "learned"
init = "xavier"
scale_embedding = false
position_deviation = 0.117
attention_bias = false
[data]
patch = 4
pool = "first"
[train]
epochs = 10
batch = 128
smoothing = 0.0
schedule = "constant"
rate = 5e-4
warmup = 0
beta2 = 0.999
epsilon = 1e-8
decay = 1e-3
clip = 0.0
)"},
    Preset{"mnist-best", "mnist",
           "the same model with images moved by up to 2 pixels, small batches and a cosine", R"(
[model]
position_deviation = 0.5
[data]
shift = 2
[train]
batch = 32
schedule = "cosine"
rate = 7e-4
warmup = 200
final_share = 0.01
beta2 = 0.98
decay = 0.01
clip = 1.0
)",
           "mnist-fast"},
};

}  // namespace

std::span<const Preset> preset::digits() { return all; }

}  // namespace heed
