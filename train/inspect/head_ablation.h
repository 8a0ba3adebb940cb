// Replaces attention heads, one at a time or many, and measures how the scores on a test set change.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "heed/attention/inspect/head_replacement.h"
#include "heed/core/io/json.h"
#include "heed/nn/transformer.h"
#include "heed/train/inspect/map_source.h"

namespace heed {

/// The heads of a task's model as heads_of_model() of its first test example finds them, named "cross.0.3" by
/// kind, layer and head.
std::vector<ModelHead> heads_of_model(const Task& task, Module& model);

/// The heads of a language model, with such names.
std::vector<ModelHead> heads_of_language_model(DecoderOnly& model);

/// The mean output of every head over all positions of the first test examples.
MeanOutputs mean_outputs(const Task& task, Module& model, int64_t examples, int64_t max_tokens);

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
