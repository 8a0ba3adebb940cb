// Multi-query associative recall: each key that returns asks for its value.
#include "heed/data/synthetic/multi_query_recall.h"

#include "heed/train/tasks/synthetic/synthetic_task.h"
#include "heed/train/tasks/task_declarations.h"

namespace heed {
namespace {

/// Zoology scores the mean over sequences of the share that is right; all sequences have as many questions,
/// so that is the share of all scored places.
class MultiQueryRecallTask final : public SyntheticTask {
 public:
  MultiQueryRecallTask()
      : SyntheticTask({.vocabulary = 8192, .length = 64, .num_examples = 100000, .test_size = 3000}) {}

 private:
  void more_fields(Fields& f) override {
    f("kv_pairs", recall_.pairs, {1, max_positions}, "keys with their values, each of them asked once");
    f("alpha", recall_.alpha,
      "gaps between a pair and its question follow a power law: the n-th place has the weight n^(alpha - 1)");
    f("random_filler", recall_.random_filler,
      "places without pair or question hold random tokens, not token 0");
  }

  void check_more() const override {
    if (options_.vocabulary % 2 != 0)
      fail("data.vocabulary = ", options_.vocabulary,
           ". It must be even: one half are keys, one half values.");
    if (options_.length % 2 != 0 || options_.length < 4 * recall_.pairs)
      fail("data.length = ", options_.length, ", and data.kv_pairs = ", recall_.pairs,
           ". The length must be even and at least 4 times the pairs: ", 4 * recall_.pairs, ".");
    if (recall_.pairs >= options_.vocabulary / 2)
      fail("data.kv_pairs = ", recall_.pairs, ", but there are ", options_.vocabulary / 2 - 1,
           " keys, and no sequence has one twice. Use fewer pairs or a larger data.vocabulary.");
    if (!(recall_.alpha >= 0 && recall_.alpha <= 1))
      fail("data.alpha = ", recall_.alpha, ". It must be 0 to 1, such as 0.01; 1: all gaps are as likely.");
  }

  std::string description() const override {
    return text(recall_.pairs, " of ", options_.vocabulary / 2 - 1, " keys with their values in ",
                options_.length, " tokens, each key asked once");
  }

  ScoredSequence sequence(Split, int64_t length, CounterRng rng) const override {
    MultiQueryRecall recall = recall_;
    recall.vocabulary = options_.vocabulary;
    recall.length = length;
    return multi_query_recall(recall, rng);
  }

  int64_t training_targets() const override { return recall_.pairs; }
  bool is_answer(int64_t token) const override { return token >= options_.vocabulary / 2; }
  std::string token_name(int64_t token) const override {
    if (token == 0) return "-";
    return is_answer(token) ? text("value ", token) : text("key ", token);
  }

  MultiQueryRecall recall_;  // vocabulary and length are those of options_
};

}  // namespace

TaskEntry task::mqar() {
  return task_entry<MultiQueryRecallTask>(
      "mqar", "multi-query associative recall: several keys return, and each asks for its value");
}

}  // namespace heed
