// MAD's tasks of memory: selective copying, compression, memorization.
#include "heed/attention/variant.h"
#include "heed/train/tasks/synthetic/mad_task.h"
#include "heed/train/tasks/synthetic/sequence_autoencoder.h"
#include "heed/train/tasks/task_declarations.h"

namespace heed {
namespace {

/// Tokens between blanks must be given back in order.
class MadCopying final : public MadTask {
 public:
  MadCopying() : MadTask(/*vocabulary=*/16, /*length=*/256, /*num_examples=*/12800) {}

 private:
  void more_fields(Fields& f) override { f("copied", mad_.copied, {1, max_positions}, "tokens to copy"); }
  void check_more() const override {
    if (options_.length < 2 * mad_.copied + 2)
      fail("data.length = ", options_.length, ". It must be at least ", 2 * mad_.copied + 2,
           ", for data.copied = ", mad_.copied, " tokens twice, a blank, and the token that asks.");
  }
  std::string description() const override {
    return text(mad_.copied, " of ", options_.vocabulary - 2, " tokens between blanks, to copy, in ",
                options_.length, " tokens");
  }
  ScoredSequence sequence(Split, int64_t length, CounterRng rng) const override {
    return mad_selective_copying(mad_options(length), rng);
  }
  int64_t training_targets() const override { return mad_.copied; }
  bool is_answer(int64_t token) const override { return token < options_.vocabulary - 2; }
  std::string token_name(int64_t token) const override {
    return is_answer(token) ? text(token) : token == options_.vocabulary - 1 ? "copy" : "-";
  }
};

/// The state of the last token must give back all tokens.
class MadCompression final : public MadTask {
 public:
  MadCompression() : MadTask(/*vocabulary=*/16, /*length=*/32, /*num_examples=*/12800) {}

  std::unique_ptr<Module> model(const Config& config, Rng& rng) const override {
    return std::make_unique<SequenceAutoencoder>(config.model, options_.vocabulary,
                                                 attention_factory(config.attention.decoder), rng);
  }

 private:
  void check_more() const override {}
  std::string description() const override {
    return text(options_.length - 1, " random tokens of ", options_.vocabulary - 1,
                ", all to be read off the state of one more");
  }
  ScoredSequence sequence(Split, int64_t length, CounterRng rng) const override {
    return mad_compression(mad_options(length), rng);
  }
  int64_t training_targets() const override { return options_.length; }
  bool is_answer(int64_t) const override { return true; }
};

/// One fixed map from keys to values, for the whole run, that the weights must hold.
class MadMemorization final : public MadTask {
 public:
  MadMemorization() : MadTask(/*vocabulary=*/256, /*length=*/32, /*num_examples=*/256) {}

 private:
  void prepare() override { values_ = mad_memorized_values(mad_options(options_.length), seed_); }
  void check_more() const override { check_even_length(); }
  std::string description() const override {
    return text((options_.vocabulary - 1) / 2, " keys whose values never change, ", options_.length / 2,
                " of them in a sequence");
  }
  ScoredSequence sequence(Split, int64_t length, CounterRng rng) const override {
    return mad_memorization(mad_options(length), values_, rng);
  }
  int64_t training_targets() const override { return options_.length / 2; }
  bool is_answer(int64_t token) const override {
    return token >= (options_.vocabulary - 1) / 2 && token < options_.vocabulary - 1;
  }
  std::string token_name(int64_t token) const override {
    return token == options_.vocabulary - 1 ? "?" : text("key ", token);
  }

  std::vector<int64_t> values_;  // the value of each key
};

}  // namespace

TaskEntry task::mad_copy() {
  return task_entry<MadCopying>("mad-copy", "MAD: selective copying of tokens between blanks");
}

TaskEntry task::mad_compress() {
  return task_entry<MadCompression>("mad-compress",
                                    "MAD: compression of a sequence into the state of its last token");
}

TaskEntry task::mad_memorize() {
  return task_entry<MadMemorization>("mad-memorize", "MAD: memorization of a fixed map from keys to values");
}

}  // namespace heed
