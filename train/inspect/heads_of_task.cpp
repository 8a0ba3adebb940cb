// The heads of a task's model, and their mean outputs over test examples.
#include "heed/core/counted_work.h"
#include "heed/train/inspect/head_ablation.h"
#include "heed/train/tasks/example_provider.h"

namespace heed {
namespace {

/// Names heads by kind, layer and number: "cross.0.3".
std::vector<ModelHead> named_by_place(std::vector<ModelHead> heads) {
  for (ModelHead& head : heads) {
    head.layer = place_of(head.layer).name();
    head.name = text(head.layer, ".", head.head);
  }
  return heads;
}

}  // namespace

std::vector<ModelHead> heads_of_language_model(DecoderOnly& model) {
  const NoGrad no_grad;
  return named_by_place(heads_of_model(model, [&](const ForwardContext& context) {
    model(Tensor::of<int32_t>(std::vector<int32_t>{0, 0}, Shape{1, 2}), context);
  }));
}

std::vector<ModelHead> heads_of_model(const Task& task, Module& model) {
  const std::vector<int64_t> first_example{0};
  constexpr int64_t max_tokens = 64;  // a short input passes through every attention, too
  return named_by_place(heads_of_model(model, [&](const ForwardContext& context) {
    task.loss(model, example_provider(task).test_batch(first_example, max_tokens).batch, context);
  }));
}

MeanOutputs mean_outputs(const Task& task, Module& model, int64_t examples, int64_t max_tokens) {
  const NoGrad no_grad;
  MeanOutputCollector collector;
  constexpr int64_t max_rows = 64;
  const auto batches = batches_of_equal_lengths(task, examples, max_tokens, max_rows);
  CountedWork work(static_cast<double>(batches.size()));
  for (const auto& numbers : batches) {
    task.loss(model, example_provider(task).test_batch(numbers, max_tokens).batch, {.editor = &collector});
    work.add();
  }
  return collector.means();
}

}  // namespace heed
