// HeadAblation: replaces the outputs or maps of chosen heads in a forward pass.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "heed/attention/inspect/model_heads.h"

namespace heed {

/// The output or map that replaces that of a head.
struct HeadReplacement {
  /// zero: an output of zeros; mean: the head's mean output over the examples; uniform: equal weights on all
  /// visible keys; identity: all weight on the query's own position (in cross-attention on the key of the
  /// same number, or on the last visible key); band: the head's weights within |i - j| <= width, scaled to
  /// the sum of the whole row.
  enum class Kind { zero, mean, uniform, identity, band };
  Kind kind = Kind::zero;  ///< kind of the replacement
  int64_t width = 3;       ///< largest |i - j| of a band
  /// Parses "zero", "band:w=3" and so on; a usage error for anything else.
  static HeadReplacement parse(const std::string& spec);
  std::string name() const;  ///< the spec that parse() reads
};

/// Mean outputs of heads, [H, d] of each attention.
using MeanOutputs = std::map<const Module*, std::vector<float>>;

/// Sums the outputs of heads over examples and positions of the forward passes that it edits. Edits nothing.
class MeanOutputCollector final : public HeadEditor {
 public:
  Tensor edit_heads(const Module& module, const Tensor& heads, const AttentionInput& input) override;
  MeanOutputs means() const;  ///< means over all passes so far

 private:
  std::map<const Module*, std::vector<double>> sums_;  // [H, d]
  std::map<const Module*, double> rows_;               // number of positions
};

/// Replaces chosen heads in the forward passes that it edits; other heads keep their bits.
class HeadAblation final : public HeadEditor {
 public:
  /// `means` is read for HeadReplacement::Kind::mean only, and must outlive the ablation. Without it, a mean
  /// is that of the call itself, over its batch and positions.
  explicit HeadAblation(const HeadReplacement& by, const MeanOutputs* means = nullptr)
      : by_(by), means_(means) {}
  /// Sets the heads to replace from now on. A forward pass fails where an attention lacks one of them, and
  /// where it calls an attention outside of the models that heads_of_model() found the heads in, before any
  /// of the heads.
  void replace(const std::vector<ModelHead>& heads);
  std::vector<int64_t> mapped_heads(const Module& module) const override;
  Tensor edit_map(const Module& module, const Tensor& map, const AttentionInput& input) override;
  Tensor edit_heads(const Module& module, const Tensor& heads, const AttentionInput& input) override;

 private:
  std::vector<int64_t> replaced_heads(const Module& module) const;
  void check_model(const Module& module);
  std::vector<float> mean_output(const Module& module, const Tensor& heads) const;
  HeadReplacement by_;
  const MeanOutputs* means_;
  std::map<const Module*, std::set<int64_t>> replaced_;
  std::string first_name_;  // name of the first head to replace; errors say it
  // The modules of the models that have these heads; empty when unknown, and once one of the heads was
  // called.
  std::set<const Module*> model_modules_ = {};
};

}  // namespace heed
