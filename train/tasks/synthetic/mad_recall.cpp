// MAD's recall: in context, noisy and fuzzy.
#include "heed/train/tasks/synthetic/mad_task.h"
#include "heed/train/tasks/task_declarations.h"

namespace heed {
namespace {

/// In-context recall: pairs of keys and values; the values of keys that return are scored in the test.
class MadRecall : public MadTask {
 public:
  MadRecall() : MadTask(/*vocabulary=*/16, /*length=*/128, /*num_examples=*/12800) {}

 protected:
  void check_more() const override {
    check_even_length();
    check_vocabulary(mad_.noise_vocabulary + 4, "noise and at least two keys with two values");
  }
  std::string description() const override {
    return text(options_.length / 2, " pairs of ", num_keys(), " keys with ", num_plain() - num_keys(),
                " values, ", mad_.noise, " of them replaced by noise");
  }
  ScoredSequence sequence(Split split, int64_t length, CounterRng rng) const override {
    return mad_recall(mad_options(length), use_of(split), rng);
  }
  int64_t training_targets() const override { return options_.length - 1; }
  bool is_answer(int64_t token) const override { return token >= num_keys() && token < num_plain(); }
  std::string token_name(int64_t token) const override {
    return text(token < num_keys() ? "key " : is_answer(token) ? "value " : "noise ", token);
  }

 private:
  int64_t num_plain() const { return options_.vocabulary - mad_.noise_vocabulary; }
  int64_t num_keys() const { return num_plain() / 2; }
};

/// In-context recall in which some pairs are noise.
class MadNoisyRecall final : public MadRecall {
 public:
  MadNoisyRecall() {
    options_.vocabulary = 32;
    mad_.noise_vocabulary = 16;
    mad_.noise = 0.2;
  }

 private:
  void more_fields(Fields& f) override {
    f("noise_vocabulary", mad_.noise_vocabulary, {1, max_positions},
      "tokens of the vocabulary that are noise");
    f("noise", mad_.noise, "probability that a pair is two tokens of noise instead");
  }
  void check_more() const override {
    MadRecall::check_more();
    if (!(mad_.noise >= 0 && mad_.noise < 1))
      fail("data.noise = ", mad_.noise, ". It must be at least 0 and below 1.");
  }
};

/// Keys and values of several tokens.
class MadFuzzyRecall final : public MadTask {
 public:
  MadFuzzyRecall() : MadTask(/*vocabulary=*/16, /*length=*/128, /*num_examples=*/12800) {}

 private:
  void more_fields(Fields& f) override {
    f("max_key", mad_.max_key, {1, max_positions},
      "maximum number of tokens of a key; in the test each has as many");
    f("max_value", mad_.max_value, {1, max_positions}, "maximum number of tokens of a value");
  }
  void check_more() const override {
    const int64_t longest = std::max(mad_.max_key, mad_.max_value),
                  shortest = 2 * (mad_.max_key + mad_.max_value) + 1;
    check_vocabulary(2 * longest + 1, "keys and values of different tokens, and padding");
    if (options_.length < shortest)
      fail("data.length = ", options_.length, ". It must be at least ", shortest,
           ", for the longest pair twice.");
  }
  std::string description() const override {
    return text("keys of 1 to ", mad_.max_key, " tokens with values of 1 to ", mad_.max_value, " in ",
                options_.length, " tokens; the test asks for keys of ", mad_.max_key);
  }
  ScoredSequence sequence(Split split, int64_t length, CounterRng rng) const override {
    return mad_fuzzy_recall(mad_options(length), use_of(split), rng);
  }
  int64_t training_targets() const override { return options_.length; }
  bool values_behind_keys() const override { return false; }
  int64_t num_keys() const { return (options_.vocabulary - 1) / 2; }
  bool is_answer(int64_t token) const override {
    return token >= num_keys() && token < options_.vocabulary - 1;
  }
  std::string token_name(int64_t token) const override {
    return token == options_.vocabulary - 1 ? "-" : text(is_answer(token) ? "value " : "key ", token);
  }
};

}  // namespace

TaskEntry task::mad_recall() {
  return task_entry<MadRecall>("mad-recall", "MAD: in-context recall of the values of keys that return");
}

TaskEntry task::mad_noisy() {
  return task_entry<MadNoisyRecall>("mad-noisy", "MAD: in-context recall between tokens of noise");
}

TaskEntry task::mad_fuzzy() {
  return task_entry<MadFuzzyRecall>("mad-fuzzy", "MAD: in-context recall, keys and values of several tokens");
}

}  // namespace heed
