// A program of one's own: every command of heed, with a task, a preset and a command more.
#include <algorithm>
#include <cstdio>

#include "heed/attention/variant.h"
#include "heed/data/batching/shuffle.h"
#include "heed/nn/encoder_models.h"
#include "heed/train/program.h"

using namespace heed;

// The task: which of four letters does a sequence have most often?
class Commonest final : public Task {
 public:
  void fields(Fields& f) override { f("letters", letters_, {4, 500}, "letters of a sequence"); }
  void load(const Config& config, const std::vector<NamedBytes>&,
            const std::function<void(const std::string&)>&) override {
    seed_ = static_cast<uint64_t>(config.train.seed);
  }
  std::unique_ptr<Module> model(const Config& config, Rng& rng) const override {
    return std::make_unique<Classifier>(config.model, Classifier::Options{.vocabulary = 4, .classes = 4},
                                        attention_factory(config.attention.encoder), rng);
  }
  int64_t plan(int64_t epoch) override {
    first_ = 1 + 100 * static_cast<uint64_t>(epoch);
    return 100;
  }
  Batch batch(int64_t position) const override { return draw(first_ + static_cast<uint64_t>(position), 32); }
  Tensor loss(Module& model, const Batch& batch, const ForwardContext& context) const override {
    return cross_entropy(dynamic_cast<Classifier&>(model)(batch.tensors[0], {}, context), batch.tensors[1]);
  }
  Scores validate(Module& model) const override {
    const Batch all = draw(0, 200);  // number 0 is never trained on
    const Tensor logits = dynamic_cast<Classifier&>(model)(all.tensors[0], {}, {});
    const std::vector<double> values = logits.to_doubles(), targets = all.tensors[1].to_doubles();
    double right = 0;
    for (size_t row = 0; row < targets.size(); ++row) {
      const auto first = values.begin() + static_cast<int64_t>(4 * row);
      right += std::max_element(first, first + 4) - first == static_cast<int64_t>(targets[row]) ? 1 : 0;
    }
    return {.list = {{"accuracy", right / all.weight}}, .lower_is_better = false};
  }

 private:
  // A pure function of (seed, number), so that a resumed run sees the same batches.
  Batch draw(uint64_t number, int64_t rows) const {
    std::vector<int32_t> ids, targets;
    for (int64_t row = 0; row < rows; ++row) {
      int64_t counts[4] = {};
      for (int64_t i = 0; i < letters_; ++i) {
        ids.push_back(static_cast<int32_t>(counter_below(seed_, number, ids.size(), 4)));
        ++counts[ids.back()];
      }
      targets.push_back(static_cast<int32_t>(std::max_element(counts, counts + 4) - counts));
    }
    return {.tensors = {Tensor::of<int32_t>(ids, Shape{rows, letters_}),
                        Tensor::of<int32_t>(targets, Shape{rows})},
            .weight = static_cast<double>(rows),  // what the loss is a mean over
            .tokens = rows * letters_};
  }

  int64_t letters_ = 15;
  uint64_t first_ = 1, seed_ = 1;
};

// The command: own_program count TEXT.
int count_letters(const ParsedArguments& arguments) {
  for (const char c : {'a', 'b', 'c', 'd'})
    std::printf("%c %td\n", c, std::count(arguments.positional[0].begin(), arguments.positional[0].end(), c));
  return 0;
}

int main(int count, char** arguments) {
  register_task({"commonest", "which of four letters is the most frequent?",
                 []() -> std::unique_ptr<Task> { return std::make_unique<Commonest>(); }});
  register_preset("commonest", "task = 'commonest'\nmodel.layers = 1\ntrain.max_steps = 200\n");
  register_command(
      {"count", "count the letters of a text", "TEXT", "a to d", 1, 1, {}, false, count_letters});
  return run_program(count, arguments);
}
