// Replaces attention heads, one at a time or many, and measures how the scores on a test set change.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "heed/core/io/json.h"
#include "heed/train/inspect/map_source.h"

namespace heed {

/// A head of a model: an attention and the number of the head in it.
struct ModelHead {
  std::string name{};              ///< "cross.0.3": kind, layer, head
  std::string layer;               ///< "cross.0"
  const Module* module = nullptr;  ///< the attention
  int64_t head = 0;                ///< number of the head, from 0
};

/// The heads of a model, in the order of a forward pass. Fails when its attentions have none that can be
/// edited.
std::vector<ModelHead> heads_of_model(const Task& task, Module& model);

/// The heads in a list such as "encoder.0.3,cross.0" of heads and layers; a layer stands for all of its
/// heads. A usage error that lists the heads of the model where a name is none of them.
std::vector<ModelHead> named_heads(const std::vector<ModelHead>& all, const std::string& list);

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
/// The mean output of every head over all positions of the first test examples.
MeanOutputs mean_outputs(const Task& task, Module& model, int64_t examples, int64_t max_tokens);

/// Replaces chosen heads in the forward passes that it edits.
class HeadAblation final : public HeadEditor {
 public:
  /// `means` is read for HeadReplacement::Kind::mean only, and must outlive the ablation.
  explicit HeadAblation(const HeadReplacement& by, const MeanOutputs* means = nullptr)
      : by_(by), means_(means) {}
  void replace(const std::vector<ModelHead>& heads);  ///< sets the heads to replace from now on
  std::vector<int64_t> mapped_heads(const Module& module) const override;
  Tensor edit_map(const Module& module, const Tensor& map, const AttentionInput& input) override;
  Tensor edit_heads(const Module& module, const Tensor& heads, const AttentionInput& input) override;

 private:
  std::vector<int64_t> replaced_heads(const Module& module) const;
  HeadReplacement by_;
  const MeanOutputs* means_;
  std::map<const Module*, std::set<int64_t>> replaced_;
};

/// A mean over examples with its standard error.
struct MeanChange {
  double value = 0;  ///< the mean
  double error = 0;  ///< standard error, from the differences of single examples
};

/// The change of the scores when some heads are replaced.
struct AblationEffect {
  std::string name{};     ///< head or layer: "cross.0.3", "cross.0"
  MeanChange loss{};      ///< change of the loss, nats per target
  MeanChange accuracy{};  ///< change of the fraction of targets that are the model's first choice
  std::optional<MeanChange> bleu = {};  ///< change of BLEU; its error is from 200 paired bootstrap samples
};

/// Scores of the model without replaced heads.
struct AblationScores {
  double loss = 0;                  ///< nats per target
  double accuracy = 0;              ///< fraction of targets that are the model's first choice
  std::optional<double> bleu = {};  ///< BLEU of the first outputs
};

/// A step of pruning, which removes one more head.
struct PruningStep {
  std::string removed{};       ///< the head that this step removed; empty in the first step
  int64_t left = 0;            ///< number of heads left
  AblationEffect effect = {};  ///< effect of removing all heads up to this step
};

/// Settings of a measurement.
struct AblationOptions {
  HeadReplacement by = {};  ///< replacement of the heads
  int64_t examples = 2000;  ///< number of first test examples
  int64_t max_tokens = 0;   ///< maximum tokens of an input, longer ones are cut; 0: no maximum
  int64_t outputs = 0;      ///< number of first test examples that are translated, for BLEU; 0: none
  std::string heads = {};   ///< list for named_heads(); empty: all heads and layers, and the pruning curve
  bool curve = true;        ///< whether the pruning curve is measured
  int64_t tried = 8;        ///< number of heads tried in each step of pruning: the least important ones
  int64_t curve_examples = 256;  ///< maximum number of examples on which heads are tried
};

/// Results of a measurement.
struct AblationReport {
  HeadReplacement by{};                 ///< replacement of the heads
  int64_t examples = 0;                 ///< number of scored examples
  int64_t outputs = 0;                  ///< number of translated examples, for BLEU
  AblationScores unpruned{};            ///< scores of the model with all heads
  std::vector<AblationEffect> heads{};  ///< effects of replacing each head alone
  std::vector<AblationEffect>
      layers{};                      ///< effects of replacing a layer's heads, or all of --heads, together
  std::vector<PruningStep> curve{};  ///< greedy pruning, least important head first; empty where not measured
  double seconds = 0;                ///< duration of the measurement
};

/// Whether a task, which must have test examples, writes a text for the first of them: translators do.
bool writes_outputs(const Task& task, Module& model, const DecodeOptions& decode);

/// A usage error where outputs are asked for and the task writes none.
void check_outputs(const Task& task, Module& model, const AblationOptions& options,
                   const DecodeOptions& decode);

/// Measures the effects of replacing heads: each alone, those of each layer together, and one after the other
/// (pruning). Calls check_outputs(). A WorkScope shows its progress (core/counted_work.h).
AblationReport ablate_heads(const Task& task, Module& model, const AblationOptions& options,
                            const DecodeOptions& decode);

Json ablation_json(const AblationReport& report);         ///< every number, as JSON
std::string ablation_text(const AblationReport& report);  ///< tables for terminals
/// Bars with errors for each head and each layer, as SVG.
std::string ablation_svg(const AblationReport& report);
/// A page that works offline: the bars, the tables and the pruning curve.
std::string ablation_page(const AblationReport& report, const std::string& title,
                          const std::string& subtitle);

}  // namespace heed
