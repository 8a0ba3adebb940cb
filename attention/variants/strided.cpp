// Sparse Transformer, strided pattern: the last l keys, plus every l-th earlier key. Child et al. 2019,
// "Generating long sequences with sparse Transformers", arXiv 1904.10509, section 4.2.
//
//   local:    i - j < l            j <= i      (l keys, as in the authors' code; l + 1 in the paper)
//   columns:  (i - j) mod l = 0    j <= i
//
// merged: both in each head. interleave: local in even layers (from 0), columns in odd ones. multihead: local
// in even heads, columns in odd ones. Two layers, or one merged, connect every key to every later query. No
// parameters of its own.
#include <cmath>

#include "heed/attention/base/patterned.h"
#include "heed/attention/variant.h"

namespace heed {
namespace {

enum class Usage { merged, interleave, multihead };

struct StridedOptions {
  int64_t stride = 0;
  Usage usage = Usage::merged;
  double scale = 0;
  void fields(Fields& f) {
    f("stride", stride, {0, max_distance},
      "l; 0: the root of the longest input, or 32 where that is not known");
    f("usage", Choice(usage, {"merged", "interleave", "multihead"}),
      "local keys and columns together, by turns of layers, or by turns of heads");
    f("scale", scale, "multiplies the scores; 0: 1 / sqrt(d)");
  }
};

class Strided final : public PatternedAttention {
 public:
  Strided(const AttentionConfig& config, const StridedOptions& o, Rng& rng)
      : PatternedAttention(config, rng, o.scale), usage_(o.usage), stride_(o.stride) {
    if (stride_ == 0 && config.max_length == 0) stride_ = 32;
    if (stride_ == 0) stride_ = std::llround(std::ceil(std::sqrt(static_cast<double>(config.max_length))));
  }

 private:
  bool local(int64_t head) const {
    return usage_ == Usage::merged || (usage_ == Usage::interleave ? config().layer : head) % 2 == 0;
  }
  bool columns(int64_t head) const { return usage_ == Usage::merged || !local(head); }
  bool same_for_all_heads() const override { return usage_ != Usage::multihead; }

  void keys(int64_t head, int64_t i, int64_t, KeySet& out) const override {
    if (local(head)) out.range(i - stride_ + 1, i + 1);
    for (int64_t j = i % stride_; columns(head) && j <= i; j += stride_) out.one(j);
  }
  int64_t reach() const override { return usage_ == Usage::interleave && local(0) ? stride_ - 1 : -1; }

  Usage usage_;
  int64_t stride_;
};

}  // namespace

Variant variant::strided() {
  return describe<Strided, StridedOptions>(
      {.name = "strided",
       .paper = "Child et al. 2019",
       .idea = "The last l keys and every l-th before them: any two positions are two steps apart.",
       .time = {.length = 1.4, .width = 1},  // n sqrt(n), plus linear terms
       .memory = {.length = 1, .width = 1},
       .causal = true,
       .full = false,
       .steps = true,
       .map = MapKind::exact,
       .from = 1024});
}

}  // namespace heed
