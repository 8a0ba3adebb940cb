// A run folder brought back to life.
#pragma once

#include <memory>
#include <string>

#include "heed/nn/weight_transfer.h"
#include "heed/train/session/attention_swap.h"
#include "heed/train/commands/command.h"
#include "heed/train/config/config.h"
#include "heed/train/progress/progress.h"
#include "heed/train/run/checkpoint_folder.h"
#include "heed/train/run/checkpoint_tokenizers.h"
#include "heed/train/run/run_folder.h"
#include "heed/train/tasks/task.h"

namespace heed {

/// A run's config, task and trained model.
struct LoadedRun {
  RunFolder folder;
  Config config;
  Checkpoint checkpoint;
  std::unique_ptr<Module> model;
  WeightTransfer transfer = {};  ///< what was done with each tensor, where the attention was swapped
};

/// How a command uses data that are given in place of a run's: a file is the test as a whole, or is split as
/// the run's data are.
enum class OtherData { test, split };

/// The path of --data or of --test-path, which name the same; empty where neither is given.
std::string other_data(const ParsedArguments& arguments);

/// Opens a run for use. `which`: best (the last where none is marked), last, or a step. With `data` its
/// corpus is read too. A `path` that is not empty then names data in place of the run's; for
/// OtherData::test, a file is the test as a whole (Task::test_on()). data.stride is `stride` when that is not
/// empty. `swap` puts another attention on the trained weights: what it has beside them is initialised from
/// train.seed, and the error for weights that do not fit names the tensors. `progress`
/// shows how the data are read; null: nothing does.
LoadedRun load_run(const Path& run, const std::string& which, const std::string& path, bool with_data,
                   const std::string& stride = "", const AttentionSwap& swap = {},
                   OtherData other = OtherData::test, Progress* progress = nullptr);

/// What a swap did with the weights, in lines for people: none where everything was copied.
std::vector<std::string> transfer_words(const WeightTransfer& transfer);

/// What --precision asks of a model that makes tokens: bf16 rounds its weights and keeps copies of half the
/// bytes, which products of few rows read; f32, the default, leaves all as trained. Fails on another word,
/// and on a model of f64.
Bf16Weights narrowed(Module& model, const ParsedArguments& arguments);
/// The option that it reads.
CommandOption precision_option();

/// Lines of standard input, or the words given.
std::vector<std::string> input_lines(const std::vector<std::string>& words);

}  // namespace heed
