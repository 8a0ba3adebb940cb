// Switches attention heads off, one at a time or many, and measures what that costs over a test set.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "heed/core/io/json.h"
#include "heed/train/inspect/map_source.h"

namespace heed {

/// A head of a model: its attention and its number there.
struct ModelHead {
  std::string name{};              ///< "cross.0.3": kind, layer, head
  std::string layer;               ///< "cross.0"
  const Module* module = nullptr;  ///< the attention
  int64_t head = 0;                ///< from 0
};

/// The heads of a model, in the order of a forward pass. Fails when its attentions have none that can be
/// edited.
std::vector<ModelHead> heads_of_model(const Task& task, Module& model);

/// The heads that a list such as "encoder.0.3,cross.0" names: heads, or all of a layer. A usage error that
/// names those there are.
std::vector<ModelHead> named_heads(const std::vector<ModelHead>& all, const std::string& list);

/// What takes the place of a head.
struct HeadReplacement {
  /// zero: nothing; mean: its mean output over the examples; uniform: equal weights on all visible keys;
  /// identity: each query attends to its own position (in cross-attention the key of the same number, or the
  /// last); band: its own weights within |i - j| <= width, scaled to the sum that the row had.
  enum class Kind { zero, mean, uniform, identity, band };
  Kind kind = Kind::zero;  ///< kind of the replacement
  int64_t width = 3;       ///< largest |i - j| of a band
  /// "zero", "band:w=3" and so on; a usage error for anything else.
  static HeadReplacement parse(const std::string& words);
  std::string name() const;  ///< what parse() reads
};

/// Mean outputs of heads, [H, d] of each attention.
using MeanOutputs = std::map<const Module*, std::vector<float>>;
/// The mean output of every head over all positions of the first test examples.
MeanOutputs mean_outputs(const Task& task, Module& model, int64_t examples, int64_t max_tokens);

/// Replaces chosen heads in every pass that it edits.
class HeadAblation final : public HeadEditor {
 public:
  /// `means` are needed for HeadReplacement::Kind::mean alone, and must live as long.
  explicit HeadAblation(const HeadReplacement& by, const MeanOutputs* means = nullptr)
      : by_(by), means_(means) {}
  void set(const std::vector<ModelHead>& off);  ///< the heads to replace from now on
  std::vector<int64_t> mapped_heads(const Module& module) const override;
  Tensor edit_map(const Module& module, const Tensor& map, const AttentionInput& input) override;
  Tensor edit_heads(const Module& module, const Tensor& heads, const AttentionInput& input) override;

 private:
  std::vector<int64_t> off_heads(const Module& module) const;
  HeadReplacement by_;
  const MeanOutputs* means_;
  std::map<const Module*, std::set<int64_t>> off_;
};

/// A mean over examples with its standard error.
struct MeanChange {
  double value = 0;  ///< the mean
  double error = 0;  ///< standard error, by the differences of single examples
};

/// What it costs to replace some heads.
struct AblationEffect {
  std::string name{};                   ///< "cross.0.3", "cross.0"
  MeanChange loss{};                    ///< change of the loss, nats per target
  MeanChange accuracy{};                ///< change of the share of targets that are most probable
  std::optional<MeanChange> bleu = {};  ///< change of BLEU; the error is of 200 paired bootstrap samples
};

/// Scores of the whole model or of a pruned one.
struct AblationScores {
  double loss = 0;                  ///< nats per target
  double accuracy = 0;              ///< 0 to 1
  std::optional<double> bleu = {};  ///< BLEU of the first outputs
};

/// A step of pruning: one head fewer.
struct PruningStep {
  std::string removed{};       ///< the head that this step removed; empty: none yet
  int64_t left = 0;            ///< heads left
  AblationEffect effect = {};  ///< effect of removing all heads up to this step
};

/// What to measure.
struct AblationOptions {
  HeadReplacement by = {};       ///< what replaces a head
  int64_t examples = 2000;       ///< the first test examples
  int64_t max_tokens = 0;        ///< longer inputs are cut; 0: none
  int64_t outputs = 0;           ///< texts written for the first test examples, for BLEU; 0: none
  std::string heads = {};        ///< as named_heads() takes them; empty: all, all layers, and the curve
  bool curve = true;             ///< remove head after head
  int64_t tried = 8;             ///< heads tried at each step of the curve: the least important ones
  int64_t curve_examples = 256;  ///< examples on which they are tried; the steps are measured on all
};

/// The results.
struct AblationReport {
  HeadReplacement by{};                 ///< what replaced heads
  int64_t examples = 0;                 ///< number of scored examples
  int64_t outputs = 0;                  ///< texts written for BLEU
  AblationScores unpruned{};            ///< scores of the model with all heads
  std::vector<AblationEffect> heads{};  ///< effects of replacing each head alone
  std::vector<AblationEffect>
      layers{};                      ///< all heads of an attention; with --heads: all chosen ones together
  std::vector<PruningStep> curve{};  ///< greedy, the least important head first; empty where not asked
  double seconds = 0;                ///< seconds that the measurement took
};

/// Measures; counts its work for a WorkScope (core/counted_work.h).
AblationReport ablate_heads(const Task& task, Module& model, const AblationOptions& options,
                            const DecodeOptions& decode);

Json ablation_json(const AblationReport& report);         ///< every number
std::string ablation_text(const AblationReport& report);  ///< a table for terminals
/// Bars with errors for each head, and the pruning curve, as SVG.
std::string ablation_svg(const AblationReport& report);
/// A page that works offline: the table, bars and curve.
std::string ablation_page(const AblationReport& report, const std::string& title,
                          const std::string& subtitle);

}  // namespace heed
