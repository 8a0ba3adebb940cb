// Opens a run: its settings, task and trained model.
#pragma once

#include <memory>
#include <string>

#include "heed/nn/weight_transfer.h"
#include "heed/train/config/config.h"
#include "heed/train/progress/progress.h"
#include "heed/train/run/checkpoint_folder.h"
#include "heed/train/run/checkpoint_tokenizers.h"
#include "heed/train/run/run_folder.h"
#include "heed/train/session/attention_swap.h"
#include "heed/train/tasks/task.h"

namespace heed {

/// A run that was opened: its config, which holds the task, and its trained model.
struct LoadedRun {
  RunFolder folder;
  Config config;
  Checkpoint checkpoint;
  std::unique_ptr<Module> model;
  WeightTransfer transfer = {};  ///< what was done with each tensor, where the attention was swapped
};

/// How load_run() opens a run.
struct LoadOptions {
  std::string checkpoint = {};  ///< best, last or a step; empty: best, and last where none is marked
  bool with_data = false;       ///< reads the corpus too, not tokenizers alone
  std::string data = {};        ///< with_data: a corpus in place of the run's; empty: the run's
  bool is_test = true;  ///< a file in `data` is the test as a whole, else it is split as the run's data are
  std::string stride = {};       ///< with_data: data.stride in place of the run's; empty: the run's
  AttentionSwap swap = {};       ///< another attention on the weights
  Progress* progress = nullptr;  ///< shows how the data are read; null: nothing does
};

/// Opens a run for use. What a swapped attention has beside the weights of the run is initialised from
/// train.seed, and the error for weights that do not fit names the tensors.
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

/// Reports what a swap did with the weights, in lines for people; empty where everything was copied.
std::vector<std::string> transfer_words(const WeightTransfer& transfer);

/// The weights of a model that makes tokens in the precision of --precision: bf16 rounds them and keeps
/// copies of half the bytes, which products of few rows read; f32, the default, leaves all as trained. Fails
/// on another word, and on a model of f64.
Bf16Weights narrowed(Module& model, const ParsedArguments& arguments);
/// --precision, which narrowed() reads.
inline constexpr CommandOption precision_option{
    "precision", "TYPE", "f32; bf16: weights rounded, half the bytes read for a token (default: f32)"};

/// Lines of standard input, or the words given.
std::vector<std::string> input_lines(const std::vector<std::string>& words);

}  // namespace heed
