// Task: the interface of a training problem: data, model, loss and scores.
#pragma once

#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "heed/attention/inspect/lens_view.h"
#include "heed/attention/inspect/map_view.h"
#include "heed/data/batching/batch.h"
#include "heed/data/tokenizers/tokenizer.h"
#include "heed/nn/transformer.h"
#include "heed/train/config/config.h"
#include "heed/train/report/report.h"
#include "heed/train/run/checkpoint_folder.h"
#include "heed/train/tasks/test_examples.h"

namespace heed {

/// The shard of a batch's rows that one of several processes computes.
struct BatchShard {
  int64_t part = 0;   ///< number of this shard, from 0
  int64_t parts = 1;  ///< number of shards
  /// The rows of this shard; shards differ by one row at most.
  BatchRows of(int64_t rows) const {
    const int64_t first = rows * part / parts;
    return {first, rows * (part + 1) / parts - first};
  }
};

/// Named scores; the first one decides which checkpoint is best.
struct Scores {
  std::vector<std::pair<std::string, double>> list;  ///< name and value, in the order of the log
  bool lower_is_better = true;                       ///< of the first score
  /// The value of the first score.
  double first() const { return list.front().second; }
  /// The value of a score; none where there is no score of this name.
  std::optional<double> find(const std::string& name) const {
    for (const auto& [other, value] : list) {
      if (other == name) return value;
    }
    return std::nullopt;
  }
  /// Compares first scores; NaN is worse than any number. Where they are equal, as accuracies over few
  /// examples often are, the score "loss" decides, if both have one.
  bool better_than(const Scores& other) const {
    if (std::isnan(first()) || std::isnan(other.first())) return !std::isnan(first());
    if (first() == other.first()) return find("loss").value_or(NAN) < other.find("loss").value_or(NAN);
    return lower_is_better ? first() < other.first() : first() > other.first();
  }
};

/// The value that a baseline, which knows little, gets in a score.
struct ScoreBaseline {
  std::string score;     ///< the score's name, as in Scores
  std::string baseline;  ///< what the baseline does: "majority"
  double value = 0;      ///< in the unit of the score
};

/// The result of scoring a test split.
struct Evaluation {
  Scores scores;                          ///< on the whole test split
  std::vector<std::string> notes;         ///< lines of text, such as a metric's signature
  std::vector<ReportSample> samples;      ///< some outputs, for the report
  std::vector<ReportSample> sentences{};  ///< of a translator: every test sentence with its output
  std::optional<Confusion> confusion;     ///< of a classifier; else empty
};

/// A part of the work of scoring, and how much of it that is: compute() does `some` of `all` units.
struct ValidationPart {
  std::function<void()> compute;  ///< does the work once
  double some = 1;                ///< units that compute() does
  double all = 1;                 ///< units of a whole validation; 0: only the test has them
  double test = 0;                ///< units of scoring the test split
};

/// A training problem. One object is made from a config, loaded once, and lives as long as its run. Five
/// functions must be written: model(), plan(), batch(), loss() and validate(); docs/how-to/own-task.md has
/// one.
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
  /// The next load() is for a trained model, to be tested on the data at `path`, which data.path names, too.
  /// Where that is one file without splits, all of it is the test split. The default changes nothing: for a
  /// task whose data come with a test split.
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
  /// Batch number `position` of the planned epoch.
  virtual Batch batch(int64_t position) const = 0;
  /// The weight of batch(position). Override it where it is known without making the batch.
  virtual double weight(int64_t position) const { return batch(position).weight; }
  /// Numbers above 0 that time and memory of batch number `position` of the planned epoch grow with, such as
  /// rows and tokens, whatever the model; as many for every batch. Batches with equal numbers cost the same.
  virtual std::vector<double> batch_cost(int64_t) const { return {1}; }
  /// A sample of validation and test: each kind of their work, including what needs most memory. The model
  /// may be untrained.
  virtual std::vector<ValidationPart> validation_cost(Module&) const { return {}; }
  /// Names of a batch's tensors, in order, for messages and `heed export`. Tensors without one are called
  /// tensor_0, tensor_1 and so on: see tensor_name().
  virtual std::vector<std::string> tensor_names() const { return {}; }
  /// Mean loss over the batch's weight; rank 0.
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
  /// Attention maps of one example, given as text (empty: one of the validation split), and its caption. The
  /// default is an error that says that the task gives none.
  virtual std::vector<MapView> maps(Module& model, const std::string& text, std::string& caption) const;
  /// The same with optional parts, for `heed inspect`. The default gives maps() without them.
  virtual std::vector<MapView> maps_with(Module& model, const std::string& text, const MapParts& parts,
                                         std::string& caption) const;

  // Test examples one by one, for statistics of attention heads and for ablations: train/inspect/ asks for
  // them. A task that gives them overrides the four functions.

  /// Number of test examples that can be asked for by number; the default, 0: none.
  virtual int64_t test_examples() const { return 0; }
  /// Lengths of the sequences of a test example. Examples with equal ones make a batch without padding.
  /// max_tokens > 0 cuts inputs to that many tokens.
  virtual std::vector<int64_t> test_lengths(int64_t number, int64_t max_tokens) const;
  /// The test examples with these numbers, from 0, with the names of their tokens.
  virtual ExampleBatch test_batch(std::span<const int64_t> numbers, int64_t max_tokens) const;
  /// The score of each example of a batch that test_batch() made. No gradient is recorded.
  virtual std::vector<ExampleScore> example_scores(Module& model, const ExampleBatch& examples,
                                                   const ForwardContext& context) const;
  /// The texts that the model writes for test examples, with their references; empty for tasks without
  /// texts. `editor` edits heads in each step; null: none.
  virtual std::vector<ReportSample> test_outputs(Module& model, std::span<const int64_t> numbers,
                                                 const DecodeOptions& decode, HeadEditor* editor) const;

  /// The text for maps() and logit_lens() of the first example of the validation split, with what a model
  /// should answer, so that every model reads the same tokens. The data must be loaded. Empty, the default:
  /// those of an empty text are the same for all models.
  virtual std::string example_text() const { return {}; }
  /// What each layer would predict for a text, as maps() takes it. The default is an error that says that
  /// the task's models predict no tokens.
  virtual LensView logit_lens(Module& model, const std::string& text) const;

  /// A shard of batch number `position`, padded as the whole batch is; no tensors when the shard is empty.
  /// The default is right when every tensor has a row for each example and all examples weigh the same.
  virtual Batch shard(int64_t position, const BatchShard& shard) const;
};

/// The name of a batch's tensor number `index`: the one that tensor_names() gives, else tensor_INDEX.
std::string tensor_name(const std::vector<std::string>& names, size_t index);

/// A registered task: its name, help text and factory.
struct TaskEntry {
  const char* name;                 ///< as TOML files say it: task = "name"
  const char* about;                ///< one line, for `heed list tasks`
  std::unique_ptr<Task> (*make)();  ///< a new task with the defaults of its settings
};

/// All tasks: those of tasks.def, then those that register_task() (train/program.h) has added, in their
/// order.
std::span<const TaskEntry> tasks();
/// Makes a task by name. A usage error with the nearest name and the list when there is none.
std::unique_ptr<Task> make_task(const std::string& name);

/// The task's model with initial weights, in the config's precision. The data must be loaded.
std::unique_ptr<Module> new_model(const Config& config, Rng& rng);

/// One map of a recorder, with names, cut to the given tokens: that of sequence number `row` of the batch.
MapView map_view(Module& model, const MapRecorder::Map& map, const std::string& kind, int64_t layer,
                 const std::vector<std::string>& query_tokens, const std::vector<std::string>& key_tokens,
                 int64_t row = 0);

/// The same with the optional parts that the recorder kept of map number `index`.
MapView map_view(Module& model, const MapRecorder& recorder, size_t index, const std::string& kind,
                 int64_t layer, const std::vector<std::string>& query_tokens,
                 const std::vector<std::string>& key_tokens);

/// The tokenizer in a checkpoint's file tokenizer.ROLE.KIND; null when there is none for this role.
std::unique_ptr<Tokenizer> artifact_tokenizer(const std::vector<NamedBytes>& files, const std::string& role);

/// Finds data given by --data: the path itself, the path inside HEED_DATA, or the folder data-NAME that `heed
/// data get NAME` makes. The error names all places searched.
Path find_data(const std::string& path);

}  // namespace heed
