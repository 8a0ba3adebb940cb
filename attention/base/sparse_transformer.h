// SparseTransformerAttention: what the strided and the fixed pattern of the Sparse Transformer share.
#pragma once

#include "heed/attention/base/patterned.h"

namespace heed {

/// Options of both patterns of the Sparse Transformer.
struct SparseTransformerOptions {
  /// Whether the patterns of a layer act together, or by turns of layers or heads.
  enum class Usage { merged, interleave, multihead };
  /// Where a query of an encoder looks: to both sides, or back only, as in a decoder.
  enum class Look { both, back };

  Usage usage = Usage::merged;  ///< both patterns in each head, or by turns of layers or heads
  Look look = Look::both;       ///< of an encoder
  bool cls = false;             ///< the first token is outside of the pattern, sees all and is seen by all
  double scale = 0;             ///< multiplies the scores; 0: 1 / sqrt(d)
  /// Names the options; `about_usage` is the help text of usage.
  void fields(Fields& f, const char* about_usage) {
    f("usage", Choice(usage, {"merged", "interleave", "multihead"}), about_usage);
    f("look", Choice(look, {"both", "back"}), "where an encoder's queries look; a decoder's look back");
    f("cls", cls,
      "the first token sees all (in a decoder itself) and is seen by all; the pattern starts at the second");
    f("scale", scale, "multiplies the scores; 0: 1 / sqrt(d)");
  }
};

/// A pattern of positions, two-sided in an encoder unless look = back. With cls the first token is outside of
/// the pattern, as the [CLS] token of the Long Range Arena is (google-research/long-range-arena,
/// lra_benchmarks/models/sparse_transformer/sparse_attention.py); the pattern counts from the second.
class SparseTransformerAttention : public PatternedAttention {
 public:
  /// `config` says whether this is a decoder, `options` where its queries look.
  SparseTransformerAttention(const AttentionConfig& config, const SparseTransformerOptions& options, Rng& rng)
      : PatternedAttention(config, rng, options.scale), shared_(options) {}

 protected:
  using Usage = SparseTransformerOptions::Usage;  ///< of shared().usage
  /// The options of both patterns.
  const SparseTransformerOptions& shared() const { return shared_; }
  /// Adds the keys that query i of a head attends to, by the pattern, which starts at position `first`; keys
  /// j are first <= j < end. Called for i >= first.
  virtual void pattern_keys(int64_t head, int64_t i, int64_t first, int64_t end, KeySet& out) const = 0;

  void keys(int64_t head, int64_t i, int64_t length, KeySet& out) const final {
    const bool back = config().causal || shared_.look == SparseTransformerOptions::Look::back;
    if (shared_.cls) out.one(0);
    if (shared_.cls && i == 0) {
      if (!config().causal) out.range(0, length);
      return;
    }
    pattern_keys(head, i, shared_.cls ? 1 : 0, back ? std::min(i + 1, length) : length, out);
  }
  bool same_for_all_heads() const override { return shared_.usage != Usage::multihead; }
  int64_t anchors() const override { return shared_.cls ? 1 : 0; }

 private:
  SparseTransformerOptions shared_;
};

}  // namespace heed
