// Retrieval of the Long Range Arena: are two papers related? One encoder reads both, byte by byte.
#include "heed/data/formats/labelled_documents.h"
#include "heed/data/synthetic/long_documents.h"
#include "heed/nn/encoder_models.h"
#include "heed/train/tasks/lra/lra.h"
#include "heed/train/tasks/task_declarations.h"

namespace heed {
namespace {

constexpr uint64_t retrieval_seed = 1;

class Retrieval final : public LongTask {
  void more_fields(Fields& f) override {
    f("shortest", lengths_.min_bytes, {600, 1'000'000}, "bytes of an embedded document at least");
    f("up_to", lengths_.max_bytes, {600, 1'000'000}, "bytes of an embedded document at most, about");
  }
  void more_model_fields(Fields& f) override {
    f("pair_head", Choice(head_, {"concat", "products"}),
      "what the head sees of both documents u and v: u and v, with one more layer; or also u v and u - v");
  }

  Tokens tokens() const override { return {.vocabulary = 257, .shift = 1, .hidden = 0.15}; }
  std::vector<std::string> classes() const override { return {"apart", "together"}; }
  Pairing pairing() const override { return head_ == Head::concat ? Pairing::concat : Pairing::products; }

  LongSplits make(const Log& log) const override {
    log("data        pairs of documents made here, which name a house each; the benchmark's: --data FOLDER "
        "of "
        "new_aan_pairs.{train,eval,test}.tsv out of the Long Range Arena's release");
    return cut(document_pairs(options_.num_examples + options_.validation + options_.test_size,
                              retrieval_seed, lengths_));
  }

  LongSplits read(const Path& path, const Log&) const override {
    return {read_document_pairs(path, "train"), read_document_pairs(path, "eval"),
            read_document_pairs(path, "test")};
  }

  std::vector<Baseline> baselines(const Sequences& train_set, const Sequences& test_set) const override {
    return {{"majority", majority(train_set, test_set)},
            {"cosine of histograms", histogram_cosine(train_set, test_set)},
            {"runs of 4 bytes", byte_ngrams(train_set, test_set, 4, NgramFeature::presence)}};
  }

  enum class Head { concat, products } head_ = Head::products;
  DocumentLengths lengths_;
};

}  // namespace

TaskEntry task::lra_retrieval() {
  return task_entry<Retrieval>(
      "lra-retrieval", "Long Range Arena: do two documents belong together? bytes, up to 4,000 tokens each");
}

}  // namespace heed
