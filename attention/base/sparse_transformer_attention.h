// SparseTransformerAttention: base class of the strided and the fixed pattern of the Sparse Transformer.
#pragma once

#include "heed/attention/base/patterned_attention.h"

namespace heed {

/// Options of both patterns of the Sparse Transformer.
struct SparseTransformerOptions {
  /// merged: both patterns in each head; interleave, multihead: one of them, alternating by layer or by head.
  enum class Usage { merged, interleave, multihead };
  /// The keys of an encoder's query: on both sides, or earlier ones only, as in a decoder.
  enum class Look { both, back };

  Usage usage = Usage::merged;  ///< how the two patterns are combined
  Look look = Look::both;       ///< in an encoder
  bool cls = false;  ///< the first token attends to all and all to it; the pattern starts at the second
  double scale = 0;  ///< multiplies the scores; 0: 1 / sqrt(d)
  /// Names the options; `about_usage` is the help text of usage.
  void fields(Fields& f, const char* about_usage) {
    f("usage", Choice(usage, {"merged", "interleave", "multihead"}), about_usage);
    f("look", Choice(look, {"both", "back"}),
      "the keys of an encoder's query: on both sides, or earlier ones only; a decoder has earlier ones only");
    f("cls", cls,
      "the first token attends to all (in a decoder to itself), and all attend to it; the pattern starts at "
      "the second");
    f("scale", scale, "multiplies the scores; 0: 1 / sqrt(d)");
  }
};

/// A pattern of positions, two-sided in an encoder unless look = back. With cls the first token is outside of
/// the pattern, as the [CLS] token of the Long Range Arena is (google-research/long-range-arena,
/// lra_benchmarks/models/sparse_transformer/sparse_attention.py); the pattern counts from the second.
class SparseTransformerAttention : public PatternedAttention {
 public:
  /// In a decoder (config.causal), queries always look back only.
  SparseTransformerAttention(const AttentionConfig& config, const SparseTransformerOptions& options, Rng& rng)
      : PatternedAttention(config, rng, options.scale), shared_(options) {}

 protected:
  using Usage = SparseTransformerOptions::Usage;  ///< type of shared().usage
  /// The options of both patterns.
  const SparseTransformerOptions& shared() const { return shared_; }
  /// Adds the keys that query i of a head attends to, by the pattern, which starts at position `first`; keys
  /// j are first <= j < end. Called for i >= first.
  virtual void pattern_keys(int64_t head, int64_t i, int64_t first, int64_t end, KeySet& out) const = 0;

  void keys(int64_t head, int64_t i, int64_t length, KeySet& out) const final {
    const bool back = config().causal || shared_.look == SparseTransformerOptions::Look::back;
    if (shared_.cls) out.add(0);
    if (shared_.cls && i == 0) {
      if (!config().causal) out.add_range(0, length);
      return;
    }
    pattern_keys(head, i, shared_.cls ? 1 : 0, back ? std::min(i + 1, length) : length, out);
  }
  bool heads_share_pattern() const override { return shared_.usage != Usage::multihead; }
  int64_t num_first_keys() const override { return shared_.cls ? 1 : 0; }

 private:
  SparseTransformerOptions shared_;
};

}  // namespace heed
