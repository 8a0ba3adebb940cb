// BigBird: block-sparse attention with a window, global blocks and random blocks. Zaheer et al. 2020, "Big
// Bird: Transformers for longer sequences", arXiv 2007.14062, section 2 (internal global blocks, ITC).
//
// Tokens are cut into nb blocks of b; the last may be shorter. Queries of block I attend to block J if I or J
// is the first or last block, if |I - J| <= 1, or if J is one of the r random blocks of I. A block that
// qualifies several times counts once (in the authors' code, several times).
// nb is that of the longest sequence of the batch, as in the authors' code: the last block of a shorter
// sequence is not global, and its random blocks are those of nb, so its output depends on the padding.
//
// Random blocks are drawn at initialisation for each head and each 1 <= I <= nb - 2, excluding the first and
// last block, the window, and the opposite block (nb - 2 for I = 1, 1 for I = nb - 2). Fixed draws:
// random_blocks [H, nb, r], i32, for the longest input (-1: none; rows 0 and nb - 1 are not read). In a
// shorter input of n blocks, J > n - 2 is replaced by 1 + (J - 1) mod (n - 2).
#include <algorithm>

#include "heed/attention/base/patterned_attention.h"
#include "heed/attention/support/host_copy.h"
#include "heed/attention/variant.h"

namespace heed {
namespace {

struct BigbirdOptions {
  int64_t block = 16, random = 3, seed = 0;
  double scale = 0;
  void fields(Fields& f) {
    f("block", block, {1, max_distance}, "b, tokens of a block");
    f("random", random, {0, 1024}, "r, random blocks of each block");
    f("seed", seed, "seed of the random blocks; 0: they follow from the model's");
    f("scale", scale, "multiplies the scores; 0: 1 / sqrt(d)");
  }
};

class BigBird final : public PatternedAttention {
 public:
  BigBird(const AttentionConfig& config, const BigbirdOptions& o, Rng& rng)
      : PatternedAttention(config, rng, o.scale), options_(o) {
    if (o.random == 0) return;
    max_blocks_ = config.max_length > 0 ? (config.max_length + o.block - 1) / o.block : 4096;
    Rng seeded(static_cast<uint64_t>(o.seed) * 1000003 + static_cast<uint64_t>(config.layer));
    random_blocks_ = draw_blocks(o.seed != 0 ? seeded : rng);
  }
  void fields(Fields& f) override {
    PatternedAttention::fields(f);
    f("random_blocks", random_blocks_);
  }
  // There is no cache: queries of an encoder attend to later keys.
  std::unique_ptr<AttentionCache> new_cache() const override { return nullptr; }

 private:
  Tensor draw_blocks(Rng& rng) const {
    const int64_t n = max_blocks_;
    std::vector<int32_t> blocks(static_cast<size_t>(config().heads * n * options_.random), -1);
    for (int64_t h = 0; h < config().heads; ++h) {
      for (int64_t i = 1; i < n - 1; ++i) {
        int32_t* drawn = blocks.data() + (h * n + i) * options_.random;  // the random blocks of block i
        const auto is_allowed = [&](int64_t j) {
          const bool is_opposite = (i == 1 && j == n - 2) || (i == n - 2 && j == 1);
          return std::abs(i - j) > 1 && !is_opposite;
        };
        int64_t count = 0;  // the smaller of r and the number of allowed blocks
        for (int64_t j = 1; j < n - 1 && count < options_.random; ++j) count += is_allowed(j) ? 1 : 0;
        for (int64_t r = 0; r < count;) {
          const auto j = static_cast<int32_t>(1 + rng.below(n - 2));
          if (is_allowed(j) && std::find(drawn, drawn + r, j) == drawn + r) drawn[r++] = j;
        }
      }
    }
    return Tensor::of<int32_t>(blocks, Shape{config().heads, n, options_.random});
  }

  bool heads_share_pattern() const override { return options_.random == 0; }

  void keys(int64_t head, int64_t i, int64_t length, KeySet& out) const override {
    const int64_t b = options_.block, n = (length + b - 1) / b, row = i / b;  // the query is in block `row`
    if (options_.random > 0 && n > max_blocks_) {
      fail("attention 'bigbird': ", length, " tokens, but its random blocks were drawn for ", max_blocks_ * b,
           ". Raise max_length.");
    }
    if (row == 0 || row >= n - 1) return out.add_range(0, length);
    out.add_range(0, b);
    out.add_range((row - 1) * b, (row + 2) * b);
    out.add_range((n - 1) * b, length);
    if (options_.random == 0) return;
    const HostCopy::Numbers blocks = block_copy_.last_read();  // pattern_version() has read them
    for (int64_t r = 0; r < options_.random; ++r) {
      int64_t j = (*blocks)[static_cast<size_t>((head * max_blocks_ + row) * options_.random + r)];
      if (j > n - 2) j = 1 + (j - 1) % (n - 2);
      if (j >= 0) out.add_range(j * b, (j + 1) * b);
    }
  }

  uint64_t pattern_version() const override {
    if (!random_blocks_) return 0;
    constexpr uint64_t fnv_offset = 1469598103934665603U, fnv_prime = 1099511628211U;
    uint64_t hash = fnv_offset;
    const HostCopy::Numbers blocks = block_copy_.read(random_blocks_);
    for (const int64_t block : *blocks) hash = (hash ^ static_cast<uint64_t>(block)) * fnv_prime;
    return hash;
  }

  BigbirdOptions options_;
  int64_t max_blocks_ = 0;  // number of blocks with draws
  Tensor random_blocks_;    // [H, nb, r]
  HostCopy block_copy_;
};

}  // namespace

Variant variant::bigbird() {
  return describe<BigBird, BigbirdOptions>(
      {.name = "bigbird",
       .paper = "Zaheer et al. 2020",
       .summary = "Blocks that attend to their neighbours, the first and last block, and a few random ones.",
       .time = {.length = 1, .width = 1},
       .memory = {.length = 1, .width = 1},
       .map = MapKind::exact,
       .min_cost_length = 2048});
}

}  // namespace heed
