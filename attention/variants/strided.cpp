// Sparse Transformer, strided pattern: the nearest l keys, plus every l-th key. Child et al. 2019,
// "Generating long sequences with sparse Transformers", arXiv 1904.10509, section 4.2.
//
//   local:    |i - j| < l           (in a decoder l keys, as in the authors' code; l + 1 in the paper)
//   columns:  (i - j) mod l = 0
//
// The paper's pattern is that of a decoder, j <= i. Queries of an encoder attend to both sides, or back only
// with look=back. merged: both in each head. interleave: local in even layers (from 0), columns in odd ones.
// multihead: local in even heads, columns in odd ones. Two layers, or one merged, connect every key to every
// query that may see it. No parameters of its own.
#include <cmath>

#include "heed/attention/base/sparse_transformer_attention.h"
#include "heed/attention/variant.h"

namespace heed {
namespace {

struct StridedOptions {
  int64_t stride = 0;
  SparseTransformerOptions shared = {};
  void fields(Fields& f) {
    f("stride", stride, {0, max_distance},
      "l; 0: the root of the longest input, or 32 where that is not known");
    shared.fields(f, "local keys and columns together, alternating by layer, or alternating by head");
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
  bool is_local(int64_t head) const {
    const Usage usage = shared().usage;
    return usage == Usage::merged || (usage == Usage::interleave ? config().layer : head) % 2 == 0;
  }
  bool has_columns(int64_t head) const { return shared().usage == Usage::merged || !is_local(head); }

  void pattern_keys(int64_t head, int64_t i, int64_t first, int64_t end, KeySet& out) const override {
    if (is_local(head)) out.add_range(std::max(first, i - stride_ + 1), std::min(i + stride_, end));
    if (!has_columns(head)) return;
    for (int64_t j = first + (i - first) % stride_; j < end; j += stride_) out.add(j);
  }
  int64_t window() const override {
    return shared().usage == Usage::interleave && is_local(0) ? stride_ - 1 : -1;
  }

  int64_t stride_;
};

}  // namespace

Variant variant::strided() {
  return describe<Strided, StridedOptions>(
      like(sparse_pattern_traits,
           {.name = "strided",
            .paper = "Child et al. 2019",
            .summary = "The nearest l keys and every l-th of all: any two positions are two steps apart.",
            .time = {.length = 1.4, .width = 1}}));  // n sqrt(n), plus linear terms
}

}  // namespace heed
