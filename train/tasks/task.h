// Task: a problem with its data, its model, its loss and its scores.
#pragma once

#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attention/map_view.h"
#include "core/share.h"
#include "data/tokenizer.h"
#include "nn/transformer.h"
#include "train/checkpoint.h"
#include "train/config.h"
#include "train/report.h"

namespace heed {

/// What a task puts into tensors for one forward pass.
struct Batch {
  std::vector<Tensor> tensors;  ///< the task knows which is which
  double weight = 0;            ///< what the loss is a mean over: target tokens or examples
  int64_t tokens = 0;           ///< for speed
  double whole = 0;             ///< of a share: the weight of the whole batch; 0: this is the whole
  BatchRows rows = {};          ///< of a share: which rows of the whole batch these are
};

/// Which part of a batch's rows one of several processes computes.
struct Share {
  int64_t part = 0, parts = 1;
  /// Of so many rows; parts differ by a row at most.
  BatchRows of(int64_t rows) const {
    const int64_t first = rows * part / parts;
    return {first, rows * (part + 1) / parts - first};
  }
};

/// Named numbers; the first decides which checkpoint is the best.
struct Scores {
  std::vector<std::pair<std::string, double>> list;
  bool lower_is_better = true;
  double first() const { return list.front().second; }
  bool better_than(const Scores& other) const {
    if (std::isnan(first()) || std::isnan(other.first())) return !std::isnan(first());
    return lower_is_better ? first() < other.first() : first() > other.first();
  }
};

/// What little knowledge gets of a score: a number that the score stands beside.
struct Known {
  std::string score, knowledge;
  double value = 0;
};

/// What a finished scoring has to show.
struct Evaluation {
  Scores scores;
  std::vector<std::string> notes;  ///< lines such as a metric's signature
  std::vector<ReportSample> samples;
  std::optional<Confusion> confusion;
};

/// Some of the work of a validation, beside all of its kind, in the same unit.
struct ValidationPart {
  std::function<void()> compute;
  double some = 1, all = 1;
};

/// A problem. One object is made from a config, loaded once, and lives as long as its run.
class Task {
 public:
  virtual ~Task() = default;
  /// Options of the data, the group "data" of the config.
  virtual void fields(Fields& f) = 0;
  /// Reads or makes the data. `sealed` holds the tokenizers of a checkpoint, or is empty: then they are
  /// trained. Says what it does through `say`.
  virtual void load(const Config& config, const std::vector<NamedBytes>& sealed,
                    const std::function<void(const std::string&)>& say) = 0;
  /// Only what is needed to use a trained model: tokenizers.
  virtual void load_sealed(const Config& config, const std::vector<NamedBytes>& sealed) = 0;
  virtual std::unique_ptr<Module> model(const Config& config, Rng& rng) const = 0;
  /// What a checkpoint must carry besides numbers: tokenizers.
  virtual std::vector<NamedBytes> sealed() const = 0;
  /// Facts for the manifest: hashes, sizes, counts. "sha256 NAME" and "data" are about the examples
  /// themselves: runs in which they differ are not compared without a word.
  virtual std::vector<std::pair<std::string, std::string>> facts() const = 0;

  /// Plans an epoch, a pure function of (seed, epoch); tells how many batches it has.
  virtual int64_t plan(int64_t epoch) = 0;
  /// Batch number `position` of the planned epoch.
  virtual Batch batch(int64_t position) const = 0;
  /// What batch(position) weighs. A task that knows it without making the batch says so here.
  virtual double weight(int64_t position) const { return batch(position).weight; }
  /// What batch number `position` of the planned epoch has more or less of than others, such as rows and
  /// tokens: numbers above 0 that time and memory grow with, whatever the model, as many for every batch.
  /// Batches that have the same are alike.
  virtual std::vector<double> extents(int64_t) const { return {1}; }
  /// What stands for a validation: every kind of its work, and what needs most memory. Of a model that was
  /// not trained yet.
  virtual std::vector<ValidationPart> rehearsal(Module&) const { return {}; }
  /// What the tensors of a batch are called, in their order.
  virtual std::vector<std::string> parts() const = 0;
  /// Mean loss over the batch's weight, rank 0.
  virtual Tensor loss(Module& model, const Batch& batch, const Pass& pass) const = 0;

  /// Scores on the validation split, quick enough to run often.
  virtual Scores validate(Module& model) const = 0;
  /// Scores on the test split, in full.
  virtual Evaluation test(Module& model, const DecodeOptions& decode) const = 0;
  /// What little knowledge scores on the test split. The data are loaded.
  virtual std::vector<Known> known() const { return {}; }
  /// Whether the weights of the last step are scored on the test split too, beside the best ones: where the
  /// validation split is none of the publisher's.
  virtual bool scores_last() const { return false; }
  /// Why a run cannot begin by learning tokens (train.pretrain); empty: it can, by data.predict.
  virtual std::string why_no_pretraining() const {
    return "it has no pre-training, which the tasks over long sequences have: lra-listops and the others";
  }
  /// The maps of one example, given as text (empty: one of the validation split), with a caption.
  virtual std::vector<MapView> maps(Module& model, const std::string& text, std::string& caption) const = 0;

  /// Of batch number `position` the rows that one of several processes computes, padded as in the whole
  /// batch; without tensors where it has none. Here: every tensor has a row for each example, and examples
  /// weigh the same.
  virtual Batch share(int64_t position, const Share& share) const;
};

/// A registered task.
struct TaskEntry {
  const char* name;
  const char* about;
  std::unique_ptr<Task> (*make)();
};

std::span<const TaskEntry> tasks();
/// Fails with the nearest name and the list.
std::unique_ptr<Task> make_task(const std::string& name);

/// The task's model with its initial weights, in the precision of the config. The data are loaded.
std::unique_ptr<Module> new_model(const Config& config, Rng& rng);

/// Attention maps collected by a probe, named and cut to the given lengths.
MapView map_view(Module& model, const Probe::Map& map, const std::string& kind, int64_t layer,
                 const std::vector<std::string>& query_tokens, const std::vector<std::string>& key_tokens);

/// The tokenizer sealed in a checkpoint as tokenizer.ROLE.KIND; null when there is none of this role.
std::unique_ptr<Tokenizer> sealed_tokenizer(const std::vector<NamedBytes>& files, const std::string& role);

/// The path of data given by --data: as it stands, inside HEED_DATA, or the folder data-NAME
/// that `heed data get NAME` makes. Fails naming where it looked first.
Path find_data(const std::string& path);

}  // namespace heed
