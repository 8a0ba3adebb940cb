// Retrieval of the Long Range Arena: do two papers, each read byte by byte by the same encoder, belong
// together?
#include "data/labelled_text.h"
#include "data/ledgers.h"
#include "train/lra.h"
#include "train/task_list.h"

namespace heed {
namespace {

constexpr uint64_t data_seed = 1;

class Retrieval final : public LongTask {
  void more_fields(Fields& f) override {
    f("pair_head", Choice(head_, {"concat", "products"}),
      "what the head sees of both documents u and v: u and v, with one more layer; or also u v and u - v");
    f("shortest", lengths_.shortest, "bytes of an embedded document at least");
    f("up_to", lengths_.longest, "bytes of an embedded document at most, about");
  }

  Tokens tokens() const override { return {.vocabulary = 257, .shift = 1, .hidden = 0.15}; }
  std::vector<std::string> classes() const override { return {"apart", "together"}; }
  Pairing pairing() const override { return head_ == Head::concat ? Pairing::concat : Pairing::products; }

  LongSplits make(const Say& say) const override {
    say("data        pairs of documents made here, which name a house each; the benchmark's: --data FOLDER "
        "of "
        "new_aan_pairs.{train,eval,test}.tsv out of the Long Range Arena's release");
    return cut(
        paired_ledgers(options_.examples + options_.validation + options_.held_out, data_seed, lengths_));
  }

  LongSplits read(const Path& path, const Say&) const override {
    return {read_document_pairs(path, "train"), read_document_pairs(path, "eval"),
            read_document_pairs(path, "test")};
  }

  std::vector<Anchor> anchors(const Sequences& known, const Sequences& asked) const override {
    return {{"majority", majority(known, asked)},
            {"cosine of histograms", histogram_cosine(known, asked)},
            {"runs of 4 bytes", byte_runs(known, asked, 4, false)}};
  }

  std::string token_name(uint8_t byte, int64_t) const override {
    return byte > 0x20 && byte < 0x7F ? std::string(1, static_cast<char>(byte))
           : byte == ' '              ? "_"
                                      : text("#", static_cast<int64_t>(byte));
  }

  enum class Head { concat, products } head_ = Head::products;
  LedgerLengths lengths_;
};

}  // namespace

TaskEntry task::lra_retrieval() {
  return {"lra-retrieval",
          "Long Range Arena: do two documents belong together? bytes, up to 4,000 tokens each",
          []() -> std::unique_ptr<Task> { return std::make_unique<Retrieval>(); }};
}

}  // namespace heed
