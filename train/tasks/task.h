// Task: the interface of a training problem: data, model, loss and scores.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "heed/data/batching/batch.h"
#include "heed/nn/attention.h"
#include "heed/train/distributed/batch_shard.h"
#include "heed/train/metrics/evaluation.h"
#include "heed/train/run/checkpoint_folder.h"

namespace heed {

struct Config;         // train/config/config.h
struct DecodeOptions;  // train/config/config.h

/// A sample of the work of scoring, which an estimate of time measures: compute() does `some` of `all` units.
struct ValidationPart {
  std::function<void()> compute;  ///< does the work once
  double some = 1;                ///< units that compute() does
  double all = 1;                 ///< units of a whole validation; 0: only the test has them
  double test = 0;                ///< units of scoring the test split
};

/// A training problem. One object is made from a config, loaded once, and lives as long as its run. Five
/// functions must be written: model(), plan(), batch(), loss() and validate(); docs/how-to/own-task.md has
/// one. A task that gives attention maps or single test examples also derives from MapProvider
/// (train/tasks/map_provider.h) or ExampleProvider (train/tasks/example_provider.h).
class Task {
 public:
  virtual ~Task() = default;
  /// Settings of the data: the group "data" of the config. The default has none.
  virtual void fields(Fields&) {}
  /// Settings of its model that no other task's model has: they join the group "model".
  virtual void model_fields(Fields&) {}
  /// Fails where settings do not go together, before any data are read: Config::check() calls it. Nothing by
  /// default.
  virtual void check_settings(const Config&) const {}
  /// Reads or generates the data; reports to `log`. `artifacts` holds the tokenizers of a checkpoint; when
  /// empty, they are trained. The default loads nothing: for a task whose batches are drawn when asked for.
  virtual void load(const Config&, const std::vector<NamedBytes>& /*artifacts*/,
                    const std::function<void(const std::string&)>& /*log*/) {}
  /// Announces that the next load() is for a trained model, to be tested on the data at `path`, which
  /// data.path names, too. Where that is one file without splits, all of it is the test split. The default
  /// changes nothing: for a task whose data come with a test split.
  virtual void test_on(const std::string& /*path*/) {}
  /// Loads only what a trained model needs: tokenizers. The default loads nothing.
  virtual void load_artifacts(const Config&, const std::vector<NamedBytes>& /*artifacts*/) {}
  /// Builds the model with weights drawn from `rng`.
  virtual std::unique_ptr<Module> model(const Config& config, Rng& rng) const = 0;
  /// Files that a checkpoint must hold besides weights: tokenizers, named tokenizer.ROLE.KIND. None by
  /// default.
  virtual std::vector<NamedBytes> artifacts() const { return {}; }
  /// Metadata for the manifest: hashes, sizes, counts. "sha256 NAME" and "data" identify the examples:
  /// comparing runs that differ in them gives a warning. None by default.
  virtual std::vector<std::pair<std::string, std::string>> metadata() const { return {}; }

  /// Plans an epoch as a pure function of (seed, epoch); returns its number of batches.
  virtual int64_t plan(int64_t epoch) = 0;
  /// Batch number `position` of the epoch that plan() planned last.
  virtual Batch batch(int64_t position) const = 0;
  /// The weight of batch(position). Override it where it is known without making the batch.
  virtual double weight(int64_t position) const { return batch(position).weight; }
  /// Numbers above 0 that time and memory of batch number `position` of the planned epoch grow with, such as
  /// rows and tokens, whatever the model; as many for every batch. Batches with equal numbers cost the same.
  virtual std::vector<double> batch_cost(int64_t /*position*/) const { return {1}; }
  /// Samples of validation and test, one for each kind of their work, including what needs most memory. The
  /// model may be untrained.
  virtual std::vector<ValidationPart> validation_cost(Module&) const { return {}; }
  /// Names of a batch's tensors, in order, for messages and `heed export`. Tensors without one are called
  /// tensor_0, tensor_1 and so on: see tensor_name().
  virtual std::vector<std::string> tensor_names() const { return {}; }
  /// Computes the mean loss over the batch's weight; rank 0.
  virtual Tensor loss(Module& model, const Batch& batch, const ForwardContext& context) const = 0;

  /// False where there is nothing to validate on: then no checkpoint is the best, and validate() is not
  /// called.
  virtual bool has_validation() const { return true; }
  /// Scores on the validation split, fast enough to compute often: at least one. The model evaluates, and no
  /// gradient is recorded. A loop that takes long counts itself: CountedWork (core/counted_work.h).
  virtual Scores validate(Module& model) const = 0;
  /// Scores on the whole test split. The default, of a task without one, gives validate()'s scores and a note
  /// that says so.
  virtual Evaluation test(Module& model, const DecodeOptions& decode) const;
  /// Adds what the model writes by itself to the result of a test, for a reader of the run: Evaluation's
  /// `samples`. Scores alone do not need it. Nothing by default.
  virtual void add_samples(Module&, Evaluation&) const {}
  /// Baselines of the test split. The data must be loaded.
  virtual std::vector<ScoreBaseline> baselines() const { return {}; }
  /// True if the last weights are scored on the test split too, besides the best ones: for benchmarks whose
  /// publisher has no validation split.
  virtual bool scores_last() const { return false; }
  /// Settings of the data, without "data.", that make reading and scoring them short: for --fast-dev-run. No
  /// value is above the present one. None by default.
  virtual std::vector<std::pair<std::string, int64_t>> small_data() const { return {}; }
  /// Why a run cannot pre-train on its tokens (train.pretrain); empty when it can, by data.predict.
  virtual std::string why_no_pretraining() const {
    return "it has no pre-training, which the tasks over long sequences have: lra-listops and the others";
  }

  /// The shard of batch number `position`, padded as the whole batch is; no tensors when the shard is empty.
  /// The default is right when every tensor has a row for each example and all examples weigh the same.
  virtual Batch shard(int64_t position, const BatchShard& shard) const;
};

/// The name of a batch's tensor number `index`: the one that tensor_names() gives, else tensor_INDEX.
std::string tensor_name(const std::vector<std::string>& names, size_t index);

}  // namespace heed
