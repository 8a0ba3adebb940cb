// Induction heads: what followed the special token when it was last seen?
#include "heed/data/synthetic/induction.h"

#include <algorithm>

#include "heed/train/tasks/synthetic/synthetic_task.h"
#include "heed/train/tasks/task_declarations.h"

namespace heed {
namespace {

class InductionTask final : public SyntheticTask {
 public:
  InductionTask() : SyntheticTask({.vocabulary = 16, .length = 256, .num_examples = 0}) {}

  /// Besides data.length, scores lengths of 64, 128, 256, ... up to data.longest_test.
  Evaluation test(Module& model, const DecodeOptions& decode) const override {
    Evaluation out = SyntheticTask::test(model, decode);
    for (int64_t length = shortest_test; length <= longest_test_; length *= 2) {
      out.scores.list.emplace_back(text("accuracy_", length),
                                   score(model, Split::test, options_.test_size, length).scores().first());
    }
    return out;
  }

 private:
  static constexpr int64_t shortest_test = 64;

  void more_fields(Fields& f) override {
    f("longest_test", longest_test_, {0, max_positions},
      "the test is scored at lengths of 64, 128, 256, ... up to this one, too; 0: at data.length alone");
  }

  void check_more() const override {
    if (longest_test_ != 0 && longest_test_ < shortest_test)
      fail("data.longest_test = ", longest_test_, ". It must be at least ", shortest_test,
           ", or 0 for data.length alone.");
  }

  std::string description() const override {
    return text(options_.length, " random tokens of ", options_.vocabulary - 1,
                ", among them the special one, which returns at the end");
  }

  ScoredSequence sequence(Split, int64_t length, CounterRng rng) const override {
    return induction({.vocabulary = options_.vocabulary, .length = length}, rng);
  }

  int64_t training_targets() const override { return 1; }
  bool is_answer(int64_t token) const override { return token < options_.vocabulary - 1; }
  std::string token_name(int64_t token) const override { return is_answer(token) ? text(token) : "special"; }
  int64_t max_length() const override { return std::max(options_.length, longest_test_); }

  int64_t longest_test_ = 0;
};

}  // namespace

TaskEntry task::induction() {
  return task_entry<InductionTask>(
      "induction", "induction heads: a special token returns, and what followed it before is asked");
}

}  // namespace heed
