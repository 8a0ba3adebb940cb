// Text of the Long Range Arena: is a movie review, read byte by byte, positive?
#include "heed/data/formats/labelled_documents.h"
#include "heed/data/synthetic/long_documents.h"
#include "heed/train/tasks/lra/lra.h"
#include "heed/train/tasks/task_declarations.h"

namespace heed {
namespace {

constexpr uint64_t text_seed = 1;

class Text final : public LongTask {
  void more_fields(Fields& f) override {
    f("shortest", lengths_.min_bytes, {600, 1'000'000}, "bytes of an embedded document at least");
    f("up_to", lengths_.max_bytes, {600, 1'000'000}, "bytes of an embedded document at most, about");
  }

  Tokens tokens() const override { return {.vocabulary = 257, .shift = 1, .hidden = 0.15}; }
  std::vector<std::string> classes() const override { return {"negative", "positive"}; }

  LongSplits make(const Log& log) const override {
    log("data        documents made here, in which only one person's word counts; the benchmark's: --data "
        "FOLDER of IMDb, or heed data get imdb");
    return cut(verdict_documents(options_.num_examples + options_.validation + options_.test_size, text_seed,
                                 lengths_));
  }

  LongSplits read(const Path& path, const Log& log) const override {
    LongSplits splits{read_imdb(path, false), {}, read_imdb(path, true)};
    hold_out(splits, options_.validation, /*shuffle=*/true);
    log("validation  held out of the training half, since the benchmark has no validation split");
    return splits;
  }

  std::vector<Baseline> baselines(const Sequences& train_set, const Sequences& test_set) const override {
    return {{"majority", majority(train_set, test_set)},
            {"histogram of bytes", byte_ngrams(train_set, test_set, 1, NgramFeature::frequency)},
            {"runs of 4 bytes", byte_ngrams(train_set, test_set, 4, NgramFeature::presence)}};
  }

  // The benchmark selects no checkpoint: it reports the last step.
  bool scores_last() const override { return !options_.path.empty(); }

  DocumentLengths lengths_;
};

}  // namespace

TaskEntry task::lra_text() {
  return task_entry<Text>("lra-text",
                          "Long Range Arena: documents as bytes, two classes, up to 4,000 tokens");
}

}  // namespace heed
