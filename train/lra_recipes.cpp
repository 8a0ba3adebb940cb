// What each recipe of the Long Range Arena sets for each task, beside what it sets for all of them. The
// sources stand in lra_presets.cpp.
#include "train/lra_presets.h"

namespace heed {
namespace {

constexpr LraRecipe all[] = {
    {"lra-listops", "tiny", "operators nested twice, 8 to 48 tokens: minutes on two cores",
     R"(model.max_length = 48
data.examples = 40000
data.depth = 3
data.arguments = 6
data.operators = 0.5
data.shortest = 8
data.below = 48
train.steps = 3000)"},
    {"lra-listops", "google", "4 blocks of width 512, 5,000 steps",
     R"(model.width = 512
model.heads = 8
model.feed_forward = 1024
model.layers = 4
model.max_length = 2001
data.head = 1024
train.batch = 32
train.steps = 5000
train.rate = 1.5811388e-3
train.warmup = 1000)"},
    {"lra-listops", "nystrom", "2 blocks of width 64, 5,000 steps",
     R"(model.max_length = 2048
train.batch = 32
train.steps = 5000
train.rate = 1e-4
train.warmup = 1000)"},
    {"lra-listops", "skyformer", "2 blocks of width 64, 50,000 steps",
     R"(model.max_length = 2048
train.batch = 32
train.steps = 50000
train.rate = 1e-4
train.warmup = 1000
train.validate_every = 500
train.clip_each = 1.0)"},
    {"lra-listops", "best", "6 blocks of width 512, rotary positions",
     R"(model.width = 512
model.heads = 8
model.feed_forward = 2048
model.layers = 6
model.max_length = 2048
train.batch = 32
train.epochs = 20
train.rate = 5e-4
train.warmup = 2000
train.validate_every = 1000)"},

    {"lra-text", "tiny", "the first 1,024 bytes: minutes on two cores",
     R"(model.max_length = 1024
data.examples = 20000
data.validation = 1000
data.shortest = 600
data.up_to = 1000
train.batch = 32
train.steps = 1000)"},
    {"lra-text", "google", "4 blocks of width 256, the first 1,000 bytes, 20,000 steps",
     R"(model.width = 256
model.heads = 4
model.feed_forward = 1024
model.layers = 4
model.max_length = 1001
data.examples = 22500
data.validation = 2500
data.held_out = 25000
data.head = 1024
train.batch = 32
train.steps = 20000
train.rate = 5.5901699e-4
train.warmup = 8000)"},
    {"lra-text", "nystrom", "2 blocks of width 64, the first 1,000 bytes, 20,000 steps",
     R"(model.max_length = 1024
data.longest = 1000
data.examples = 22500
data.validation = 2500
data.held_out = 25000
train.batch = 32
train.steps = 20000
train.rate = 1e-4
train.warmup = 8000)"},
    {"lra-text", "skyformer", "2 blocks of width 64, the first 4,000 bytes, 50,000 steps",
     R"(model.max_length = 4096
data.longest = 4000
data.examples = 22500
data.validation = 2500
data.held_out = 25000
train.batch = 32
train.steps = 50000
train.rate = 1e-4
train.warmup = 80
train.validate_every = 500
train.clip_each = 1.0)"},
    {"lra-text", "best", "6 blocks of width 512, rotary positions, the first 4,096 bytes",
     R"(model.width = 512
model.heads = 8
model.feed_forward = 2048
model.layers = 6
model.max_length = 4096
model.dropout = 0.1
data.examples = 22500
data.validation = 2500
data.held_out = 25000
train.batch = 32
train.epochs = 30
train.rate = 5e-4
train.warmup = 2000
train.decay = 0.1)"},

    {"lra-retrieval", "tiny", "the first 1,024 bytes of each: minutes on two cores",
     R"(model.max_length = 1024
data.examples = 20000
data.validation = 1000
data.shortest = 600
data.up_to = 1000
data.pair_head = "products"
train.batch = 16
train.steps = 1000)"},
    {"lra-retrieval", "google", "4 blocks of width 128, 5,000 steps that never leave the warm-up",
     R"(model.width = 128
model.heads = 4
model.feed_forward = 512
model.layers = 4
model.max_length = 4001
data.examples = 147086
data.validation = 18090
data.held_out = 17437
data.head = 512
data.pair_head = "concat"
train.batch = 32
train.steps = 5000
train.rate = 5.5901699e-4
train.warmup = 8000)"},
    {"lra-retrieval", "nystrom", "2 blocks of width 64, 30,000 steps",
     R"(model.max_length = 4096
data.longest = 4000
data.examples = 147086
data.validation = 18090
data.held_out = 17437
data.pair_head = "products"
train.batch = 32
train.steps = 30000
train.rate = 1e-4
train.warmup = 800)"},
    {"lra-retrieval", "skyformer", "2 blocks of width 64, 50,000 steps",
     R"(model.max_length = 4096
data.longest = 4000
data.examples = 147086
data.validation = 4800
data.held_out = 17437
data.pair_head = "products"
train.batch = 16
train.steps = 50000
train.rate = 2e-4
train.warmup = 800
train.validate_every = 1000
train.clip_each = 1.0)"},
    {"lra-retrieval", "best", "4 blocks of width 128, rotary positions",
     R"(model.width = 128
model.heads = 4
model.feed_forward = 512
model.layers = 4
model.max_length = 4096
data.examples = 147086
data.validation = 4000
data.held_out = 17437
data.head = 128
data.pair_head = "products"
train.batch = 32
train.epochs = 10
train.rate = 5e-4
train.warmup = 5000)"},

    {"lra-image", "tiny", "16 x 16 pixels: minutes on two cores",
     R"(model.max_length = 256
data.examples = 20000
data.side = 16
train.batch = 64
train.steps = 1500)"},
    {"lra-image", "google", "1 block of width 128, 35,000 steps",
     R"(model.width = 128
model.heads = 8
model.head_width = 8
model.feed_forward = 128
model.layers = 1
model.max_length = 1025
model.dropout = 0.3
model.attention_dropout = 0.2
model.position = "learned"
data.examples = 45000
data.validation = 5000
data.held_out = 10000
data.head = 128
train.batch = 256
train.steps = 35000
train.schedule = "cosine"
train.rate = 5e-4
train.warmup = 175
train.decay = 0.0)"},
    {"lra-image", "nystrom", "2 blocks of width 64, 35,000 steps",
     R"(model.max_length = 1024
data.examples = 45000
data.validation = 5000
data.held_out = 10000
data.pixel_zero = "pad"
train.batch = 256
train.steps = 35000
train.rate = 1e-4
train.warmup = 175)"},
    {"lra-image", "skyformer", "2 blocks of width 64, 50,000 steps",
     R"(model.max_length = 1024
data.examples = 45000
data.validation = 5000
data.held_out = 10000
data.pixel_zero = "pad"
train.batch = 256
train.steps = 50000
train.rate = 1e-4
train.warmup = 175
train.validate_every = 500
train.clip_each = 1.0)"},
    {"lra-image", "best", "3 blocks of width 64, rotary positions, 200 epochs",
     R"(model.width = 64
model.heads = 4
model.feed_forward = 128
model.layers = 3
model.max_length = 1024
data.examples = 45000
data.validation = 5000
data.held_out = 10000
train.batch = 50
train.epochs = 200
train.rate = 1e-3
train.warmup = 2000)"},

    {"lra-pathfinder", "tiny", "16 x 16 pixels; it stays at chance for long",
     R"(model.layers = 3
model.heads = 4
model.max_length = 256
data.examples = 20000
data.side = 16
train.batch = 64
train.steps = 1500)"},
    {"lra-pathfinder", "google", "4 blocks of width 32, 62,400 steps",
     R"(model.width = 32
model.heads = 4
model.head_width = 4
model.feed_forward = 32
model.layers = 4
model.max_length = 1024
model.dropout = 0.2
data.examples = 160000
data.validation = 20000
data.held_out = 20000
data.pool = "mean"
data.mean_over = "padded"
data.pixel_zero = "pad"
data.head = 32
train.batch = 512
train.steps = 62400
train.schedule = "cosine"
train.rate = 1e-3
train.warmup = 312
train.decay = 0.0)"},
    {"lra-pathfinder", "nystrom", "2 blocks of width 64, 62,400 steps",
     R"(model.max_length = 1024
data.examples = 160000
data.validation = 20000
data.held_out = 20000
data.pixel_zero = "pad"
train.batch = 256
train.steps = 62400
train.rate = 1e-4
train.warmup = 312)"},
    {"lra-pathfinder", "skyformer", "2 blocks of width 64, 50,000 steps",
     R"(model.max_length = 1024
data.examples = 160000
data.validation = 19968
data.held_out = 20000
data.pixel_zero = "pad"
train.batch = 128
train.steps = 50000
train.rate = 2e-4
train.warmup = 312
train.validate_every = 500
train.clip_each = 1.0)"},
    {"lra-pathfinder", "best", "4 blocks of width 128, rotary positions, 200 epochs",
     R"(model.width = 128
model.heads = 8
model.feed_forward = 128
model.layers = 4
model.max_length = 1024
data.examples = 160000
data.validation = 4000
data.held_out = 20000
train.batch = 32
train.epochs = 200
train.rate = 5e-4
train.warmup = 5000
train.validate_every = 5000)"},

    {"lra-pathx", "tiny", "brought down to 32 x 32 pixels; it stays at chance for long",
     R"(model.layers = 3
model.heads = 4
model.max_length = 1024
data.examples = 4000
data.validation = 500
data.held_out = 500
data.side = 32
train.batch = 16
train.steps = 500)"},
    {"lra-pathx", "google", "1 block of width 32, 500,000 steps",
     R"(model.width = 32
model.heads = 2
model.head_width = 8
model.feed_forward = 32
model.layers = 1
model.max_length = 16384
model.position = "learned"
data.examples = 160000
data.validation = 20000
data.held_out = 20000
data.pool = "mean"
data.mean_over = "padded"
data.pixel_zero = "pad"
data.head = 32
train.batch = 64
train.steps = 500000
train.schedule = "cosine"
train.rate = 1e-3
train.warmup = 312
train.decay = 0.0
train.clip = 1.0)"},
    {"lra-pathx", "nystrom", "the recipe of Pathfinder over 16,384 tokens; none is published",
     R"(model.max_length = 16384
data.examples = 160000
data.validation = 2000
data.held_out = 20000
data.pixel_zero = "pad"
train.batch = 64
train.steps = 62400
train.rate = 1e-4
train.warmup = 312)"},
    {"lra-pathx", "skyformer", "the recipe of Pathfinder over 16,384 tokens; none is published",
     R"(model.max_length = 16384
data.examples = 160000
data.validation = 2000
data.held_out = 20000
data.pixel_zero = "pad"
train.batch = 32
train.steps = 50000
train.rate = 2e-4
train.warmup = 312
train.clip_each = 1.0)"},
    {"lra-pathx", "best", "4 blocks of width 128 over 16,384 tokens, rotary positions",
     R"(model.width = 128
model.heads = 8
model.feed_forward = 128
model.layers = 4
model.max_length = 16384
data.examples = 160000
data.validation = 2000
data.held_out = 20000
train.batch = 16
train.epochs = 50
train.rate = 5e-4
train.warmup = 5000
train.validate_every = 5000)"},
};

}  // namespace

std::span<const LraRecipe> lra_recipes() { return all; }

}  // namespace heed
