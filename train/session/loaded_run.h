// Opens a run with its settings, task and trained model, and the options of commands that do.
#pragma once

#include <memory>
#include <string>

#include "heed/nn/weight_transfer.h"
#include "heed/train/config/config.h"
#include "heed/train/progress/progress.h"
#include "heed/train/run/checkpoint_folder.h"
#include "heed/train/run/run_folder.h"
#include "heed/train/session/attention_swap.h"
#include "heed/train/tasks/task.h"

namespace heed {

/// An opened run.
struct LoadedRun {
  RunFolder folder;
  Config config;                  ///< settings, and the task
  Checkpoint checkpoint;          ///< checkpoint of the weights
  std::unique_ptr<Module> model;  ///< model with the trained weights
  WeightTransfer transfer = {};   ///< tensors that were not copied, where an attention was replaced
};

/// Settings of load_run().
struct LoadOptions {
  std::string checkpoint = {};   ///< best, last or a step; empty: best, and last where none is marked
  bool with_data = false;        ///< whether the data are loaded too, not the tokenizers alone
  std::string data = {};         ///< with_data: path of other data; empty: the run's
  bool is_test = true;           ///< whether all of a file in `data` is test data; else it is split
  std::string stride = {};       ///< with_data: another data.stride; empty: the run's
  AttentionSwap swap = {};       ///< attentions that replace those of the run
  Progress* progress = nullptr;  ///< shows the progress of loading the data; null: nothing is shown
};

/// Opens a run. Tensors that a replaced attention has and the run lacks are initialised from train.seed.
/// Fails, naming the tensors, where weights do not fit.
LoadedRun load_run(const Path& run, const LoadOptions& options = {});

/// The path of --data or of --test-path, two names of one option; empty where neither is given.
std::string other_data(const ParsedArguments& arguments);

/// --beam-size and --length-penalty, of commands that decode with a run's model; checks the config
/// afterwards.
void apply_decoding(Config& config, const ParsedArguments& arguments);
/// `options` followed by the two that apply_decoding() reads.
std::vector<CommandOption> with_decoding_options(std::vector<CommandOption> options);

/// --checkpoint, of commands that load a run.
inline constexpr CommandOption checkpoint_option{"checkpoint", "WHICH",
                                                 "best, last or a step (default: best)"};

/// Lists, in lines for people, the tensors that were not copied; empty where all were.
std::vector<std::string> transfer_words(const WeightTransfer& transfer);

/// Copies of the model's weights for --precision bf16 or q8_0: matrix products of few rows, as in decoding,
/// read half the bytes or fewer. None for f32, the default. Fails for another word, for a model in f64, and
/// where no matrix can be kept so.
NarrowWeights narrowed(Module& model, const ParsedArguments& arguments);
/// --precision, which narrowed() reads.
inline constexpr CommandOption precision_option{
    "precision", "TYPE",
    "f32; weights rounded so that a token reads fewer bytes: bf16, half of them; q8_0, 28 % (default: f32)"};

}  // namespace heed
