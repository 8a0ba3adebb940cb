// Sparse Transformer, fixed pattern: blocks, plus summary keys at the end of each block. Child et al. 2019,
// "Generating long sequences with sparse Transformers", arXiv 1904.10509, section 4.2.
//
//   block:    i div l = j div l
//   summary:  j mod l >= l - c           the last c keys of each block summarise it
//
// The paper's pattern is that of a decoder, j <= i. Queries of an encoder attend to both sides, or back only
// with look=back, as in the Long Range Arena. merged: both in each head. interleave: the block in even layers
// (from 0), summaries in odd ones; there a query that looks back from before the first summary has no keys
// and gives zeros. multihead: the block, and c summary keys that differ by head: head h takes sub-block h mod
// verts of c keys, counted from the end of a block. No parameters of its own.
#include <cmath>

#include "heed/attention/base/sparse_transformer_attention.h"
#include "heed/attention/variant.h"

namespace heed {
namespace {

struct FixedOptions {
  int64_t block = 0, summary = 8, verts = 4;
  bool include_block_start = false;
  SparseTransformerOptions shared = {};
  void fields(Fields& f) {
    f("block", block, {0, max_distance},
      "l; 0: the root of the longest input, or 128 where that is not known");
    f("summary", summary, {1, max_distance},
      "c, keys of a block that queries of other blocks attend to; with block = 0 at most a block");
    f("verts", verts, {1, max_distance},
      "multihead: number of different summaries, assigned to heads in turn");
    f("include_block_start", include_block_start, "the first key of each block is a summary too");
    shared.fields(
        f,
        "block and summaries together, alternating by layer, or together with summaries that differ by head");
  }
};

class Fixed final : public SparseTransformerAttention {
 public:
  Fixed(const AttentionConfig& config, const FixedOptions& o, Rng& rng)
      : SparseTransformerAttention(config, o.shared, rng), options_(o) {
    if (o.shared.usage != Usage::multihead) options_.verts = 1;
    if (o.block == 0) {
      options_.block = config.max_length == 0
                           ? 128
                           : std::llround(std::ceil(std::sqrt(static_cast<double>(config.max_length))));
      options_.summary = std::min(options_.summary, options_.block);
      options_.verts = std::min(options_.verts, options_.block / options_.summary);
    }
    if (options_.summary * options_.verts > options_.block) {
      fail("attention 'fixed': ", options_.verts, " summaries of ", options_.summary, " keys in a block of ",
           options_.block, ". Make the block larger, or summary or verts smaller.");
    }
  }

 private:
  bool has_block() const { return shared().usage != Usage::interleave || config().layer % 2 == 0; }
  bool has_summaries() const { return shared().usage != Usage::interleave || !has_block(); }

  void pattern_keys(int64_t head, int64_t i, int64_t first, int64_t end, KeySet& out) const override {
    const int64_t l = options_.block, block_start = first + (i - first) / l * l;
    if (has_block()) out.add_range(block_start, std::min(block_start + l, end));
    if (!has_summaries()) return;
    const int64_t summary_end = l - options_.summary * (head % options_.verts);  // within a block
    for (int64_t start = first; start < end; start += l) {
      out.add_range(start + summary_end - options_.summary, std::min(start + summary_end, end));
      if (options_.include_block_start) out.add(start);
    }
  }
  int64_t window() const override { return has_summaries() ? -1 : options_.block - 1; }

  FixedOptions options_;
};

}  // namespace

Variant variant::fixed() {
  return describe<Fixed, FixedOptions>(
      like(sparse_pattern_traits,
           {.name = "fixed",
            .paper = "Child et al. 2019",
            .summary = "Blocks, and the last keys of each block, which summarise it for all other blocks.",
            .time = {.length = 1.5, .width = 1}}));
}

}  // namespace heed
