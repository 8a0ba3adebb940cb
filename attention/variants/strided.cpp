// Sparse Transformer, strided pattern: the nearest l keys, plus every l-th key. Child et al. 2019,
// "Generating long sequences with sparse Transformers", arXiv 1904.10509, section 4.2.
//
//   local:    |i - j| < l           (in a decoder l keys, as in the authors' code; l + 1 in the paper)
//   columns:  (i - j) mod l = 0
//
// The paper's pattern is that of a decoder, j <= i. An encoder looks to both sides, or back only with
// look=back. merged: both in each head. interleave: local in even layers (from 0), columns in odd ones.
// multihead: local in even heads, columns in odd ones. Two layers, or one merged, connect every key to every
// query that may see it. No parameters of its own.
#include <cmath>

#include "heed/attention/base/sparse_transformer.h"
#include "heed/attention/variant.h"

namespace heed {
namespace {

struct StridedOptions {
  int64_t stride = 0;
  SparseTransformerOptions shared = {};
  void fields(Fields& f) {
    f("stride", stride, {0, max_distance},
      "l; 0: the root of the longest input, or 32 where that is not known");
    shared.fields(f, "local keys and columns together, by turns of layers, or by turns of heads");
  }
};

class Strided final : public SparseTransformerAttention {
 public:
  Strided(const AttentionConfig& config, const StridedOptions& o, Rng& rng)
      : SparseTransformerAttention(config, o.shared, rng), stride_(o.stride) {
    if (stride_ == 0 && config.max_length == 0) stride_ = 32;
    if (stride_ == 0) stride_ = std::llround(std::ceil(std::sqrt(static_cast<double>(config.max_length))));
  }

 private:
  bool local(int64_t head) const {
    const Usage usage = shared().usage;
    return usage == Usage::merged || (usage == Usage::interleave ? config().layer : head) % 2 == 0;
  }
  bool columns(int64_t head) const { return shared().usage == Usage::merged || !local(head); }

  void pattern_keys(int64_t head, int64_t i, int64_t first, int64_t end, KeySet& out) const override {
    if (local(head)) out.range(std::max(first, i - stride_ + 1), std::min(i + stride_, end));
    if (!columns(head)) return;
    for (int64_t j = first + (i - first) % stride_; j < end; j += stride_) out.one(j);
  }
  int64_t reach() const override {
    return shared().usage == Usage::interleave && local(0) ? stride_ - 1 : -1;
  }

  int64_t stride_;
};

}  // namespace

Variant variant::strided() {
  return describe<Strided, StridedOptions>(
      {.name = "strided",
       .paper = "Child et al. 2019",
       .idea = "The nearest l keys and every l-th of all: any two positions are two steps apart.",
       .time = {.length = 1.4, .width = 1},  // n sqrt(n), plus linear terms
       .memory = {.length = 1, .width = 1},
       .causal = true,
       .steps = true,
       .map = MapKind::exact,
       .from = 1024});
}

}  // namespace heed
