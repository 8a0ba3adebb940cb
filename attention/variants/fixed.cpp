// Sparse Transformer, fixed pattern: blocks, plus summary keys at the end of each block. Child et al. 2019,
// "Generating long sequences with sparse Transformers", arXiv 1904.10509, section 4.2.
//
//   block:    i div l = j div l
//   summary:  j mod l >= l - c           the last c keys of each block summarise it
//
// The paper's pattern is that of a decoder, j <= i. An encoder looks to both sides, or back only with
// look=back, as in the Long Range Arena. merged: both in each head. interleave: the block in even layers
// (from 0), summaries in odd ones; there a query that looks back from before the first summary has no keys
// and gives zeros. multihead: the block, and c summary keys that differ by head: head h takes sub-block h mod
// verts of c keys, counted from the end of a block. No parameters of its own.
#include <cmath>

#include "heed/attention/base/sparse_transformer.h"
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
      "c, keys of a block that queries of other blocks see; with block = 0 at most a block");
    f("verts", verts, {1, max_distance}, "multihead: how many different summaries the heads take by turns");
    f("include_block_start", include_block_start, "the first key of each block is a summary too");
    shared.fields(
        f,
        "block and summaries together, by turns of layers, or together with summaries that differ by head");
  }
};

class Fixed final : public SparseTransformerAttention {
 public:
  Fixed(const AttentionConfig& config, const FixedOptions& o, Rng& rng)
      : SparseTransformerAttention(config, o.shared, rng), o_(o) {
    if (o.shared.usage != Usage::multihead) o_.verts = 1;
    if (o.block == 0) {
      o_.block = config.max_length == 0
                     ? 128
                     : std::llround(std::ceil(std::sqrt(static_cast<double>(config.max_length))));
      o_.summary = std::min(o_.summary, o_.block);
      o_.verts = std::min(o_.verts, o_.block / o_.summary);
    }
    if (o_.summary * o_.verts > o_.block) {
      fail("attention 'fixed': ", o_.verts, " summaries of ", o_.summary, " keys in a block of ", o_.block,
           ". Make the block larger, or summary or verts smaller.");
    }
  }

 private:
  bool block() const { return shared().usage != Usage::interleave || config().layer % 2 == 0; }
  bool summaries() const { return shared().usage != Usage::interleave || !block(); }

  void pattern_keys(int64_t head, int64_t i, int64_t first, int64_t end, KeySet& out) const override {
    const int64_t l = o_.block, own = first + (i - first) / l * l;
    if (block()) out.range(own, std::min(own + l, end));
    if (!summaries()) return;
    const int64_t stop = l - o_.summary * (head % o_.verts);
    for (int64_t start = first; start < end; start += l) {
      out.range(start + stop - o_.summary, std::min(start + stop, end));
      if (o_.include_block_start) out.one(start);
    }
  }
  int64_t reach() const override { return summaries() ? -1 : o_.block - 1; }

  FixedOptions o_;
};

}  // namespace

Variant variant::fixed() {
  return describe<Fixed, FixedOptions>(
      {.name = "fixed",
       .paper = "Child et al. 2019",
       .idea = "Blocks, and the last keys of each block, which sum it up for all others.",
       .time = {.length = 1.5, .width = 1},
       .memory = {.length = 1, .width = 1},
       .causal = true,
       .steps = true,
       .map = MapKind::exact,
       .from = 1024});
}

}  // namespace heed
