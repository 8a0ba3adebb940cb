// What the tasks of the Long Range Arena share: long inputs of bytes, one encoder, classes, anchors.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "data/anchors.h"
#include "data/sequences.h"
#include "train/task.h"

namespace heed {

/// Training, validation and test examples.
struct LongSplits {
  Sequences train, validation, test;
};

/// Options of every task over long sequences; each is fixed by a recipe and recorded with the run.
struct LongOptions {
  std::string path;
  int64_t examples = 96000, validation = 2000, held_out = 2000;
  int64_t scored = 0;
  int64_t longest = 0;
  Pool pool = Pool::mean;
  enum class MeanOver { real, padded } mean_over = MeanOver::real;
  int64_t head = 0;
  bool buckets = true;
  enum class Predict { classes, masked, causal } predict = Predict::classes;
  double hidden_share = 0;
  void fields(Fields& f);
};

/// A task whose examples are byte strings and whose answers are classes. Subclasses say where the data come
/// from; tokens, batches, model, loss and scores are here. Tay et al. 2021, arXiv 2011.04006. With
/// data.predict, the tokens themselves are what is learned: see train/pretraining.h.
class LongTask : public Task {
 public:
  using Say = std::function<void(const std::string&)>;

  void fields(Fields& f) final;
  void load(const Config& config, const std::vector<NamedBytes>& sealed, const Say& say) final;
  void load_sealed(const Config& config, const std::vector<NamedBytes>& sealed) final;
  std::unique_ptr<Module> model(const Config& config, Rng& rng) const final;
  std::vector<NamedBytes> sealed() const final { return {}; }
  std::vector<std::pair<std::string, std::string>> facts() const final { return facts_; }
  std::vector<Known> known() const final { return known_; }
  int64_t plan(int64_t epoch) final;
  Batch batch(int64_t position) const final;
  double weight(int64_t position) const final;
  Batch share(int64_t position, const Share& share) const final;
  std::vector<double> extents(int64_t position) const final;
  std::vector<ValidationPart> rehearsal(Module& model) const final;
  std::vector<std::string> parts() const final;
  Tensor loss(Module& model, const Batch& batch, const Pass& pass) const final;
  Scores validate(Module& model) const final;
  Evaluation test(Module& model, const DecodeOptions& decode) const final;
  std::vector<MapView> maps(Module& model, const std::string& given, std::string& caption) const final;
  std::string why_no_pretraining() const final;

 protected:
  /// What the bytes of an input mean.
  struct Tokens {
    int64_t vocabulary = 0;
    int64_t shift = 0;        ///< the id of byte b is b + shift
    bool fixed = false;       ///< every input has the same length
    bool drop_zeros = false;  ///< bytes of 0 are padding wherever they stand: they are left out
    double hidden = 0.5;      ///< share that is hidden where hidden tokens are predicted
  };

  virtual void more_fields(Fields&) {}
  /// Fails on options that are not legal.
  virtual void check(const Config&) const {}
  virtual Tokens tokens() const = 0;
  virtual std::vector<std::string> classes() const = 0;
  virtual Pairing pairing() const { return Pairing::none; }
  /// The embedded data. Says what they are and where the real ones are.
  virtual LongSplits make(const Say& say) const = 0;
  /// The original files.
  virtual LongSplits read(const Path& path, const Say& say) const = 0;
  /// What little knowledge scores.
  virtual std::vector<Anchor> anchors(const Sequences& known, const Sequences& asked) const = 0;
  /// What a token is called on a map.
  virtual std::string token_name(uint8_t byte, int64_t place) const = 0;

  /// Cuts the last examples off as validation and test: examples, validation, held_out.
  LongSplits cut(const Sequences& all) const;
  /// Takes up to data.validation and at most a tenth of the training examples away for validation: the last
  /// ones, or any.
  static void hold_out(LongSplits& splits, int64_t validation, bool shuffle);

  LongOptions options_;

 private:
  struct Result;
  bool predicts_classes() const { return options_.predict == LongOptions::Predict::classes; }
  bool has_lengths() const { return !tokens().fixed || tokens().drop_zeros; }
  int64_t length(const Sequences& set, int64_t example) const;
  int64_t longest_of(const Sequences& set, std::span<const int64_t> numbers) const;
  /// Padded to `longest`. Where tokens are hidden, which ones follows from (seed, drawn, example).
  Batch tensors(const Sequences& set, std::span<const int64_t> numbers, uint64_t drawn,
                int64_t longest) const;
  Batch tensors(const Sequences& set, std::span<const int64_t> numbers, uint64_t drawn) const {
    return tensors(set, numbers, drawn, longest_of(set, numbers));
  }
  Tensor logits(Module& model, const Batch& batch, const Pass& pass) const;
  /// The first `count` examples in the batches that they are scored in, the shortest first.
  std::vector<std::vector<int64_t>> scored_together(const Sequences& set, int64_t count) const;
  Result score(Module& model, const Sequences& set, int64_t count) const;
  Scores scores_of(const Result& result) const;
  /// What frequencies alone know of tokens, in words; puts the numbers into known_.
  std::string frequencies();

  LongSplits splits_;
  std::vector<Known> known_;  // what little knowledge scores
  std::string known_words_;
  int64_t batch_ = 1, max_length_ = 0, longest_ = 0, epoch_ = 0;
  uint64_t seed_ = 1;
  double smoothing_ = 0;
  std::string recipe_;
  std::vector<std::vector<int64_t>> planned_;
  std::vector<std::pair<std::string, std::string>> facts_;
};

/// Fails when images of `from` pixels a side cannot be averaged down to `side`, naming data.side.
void check_side(int64_t from, int64_t side);

/// Square images of one byte a pixel, averaged down to `side` pixels a side; as they are when they have that.
Sequences shrunk(Sequences images, int64_t from, int64_t side);

}  // namespace heed
