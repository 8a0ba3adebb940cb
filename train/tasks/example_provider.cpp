// Scores single examples, in f64.
#include "heed/train/tasks/example_provider.h"

#include <algorithm>
#include <cmath>

#include "heed/core/parallel/thread_pool.h"

namespace heed {

std::vector<ReportSample> ExampleProvider::test_outputs(Module&, std::span<const int64_t>,
                                                        const DecodeOptions&, HeadEditor*) const {
  return {};
}

const ExampleProvider& example_provider(const Task& task) {
  const auto* provider = dynamic_cast<const ExampleProvider*>(&task);
  if (provider == nullptr)
    fail(
        "this task gives no test examples by number. A task gives them by deriving from ExampleProvider, "
        "too.");
  return *provider;
}

int64_t num_test_examples(const Task& task) {
  const auto* provider = dynamic_cast<const ExampleProvider*>(&task);
  return provider == nullptr ? 0 : provider->test_examples();
}

std::vector<ExampleScore> scores_of_examples(const Tensor& logits, const Tensor& targets,
                                             std::span<const int64_t> counts) {
  const int64_t classes = logits.extent(-1), rows = logits.size() / std::max<int64_t>(classes, 1);
  const std::vector<float> values = logits.to_host();
  const std::vector<double> labels = targets.to_doubles();
  std::vector<double> loss(labels.size()), correct(labels.size());
  parallel_rows(std::min(rows, static_cast<int64_t>(labels.size())), 16, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const auto index = static_cast<size_t>(row);
      if (labels[index] < 0) continue;
      const float* x = values.data() + row * classes;
      const float* max = std::max_element(x, x + classes);
      double sum = 0;
      for (int64_t i = 0; i < classes; ++i) sum += std::exp(static_cast<double>(x[i]) - *max);
      const auto target = static_cast<int64_t>(labels[index]);
      loss[index] = std::log(sum) + *max - x[target];
      correct[index] = max - x == target ? 1 : 0;
    }
  });
  std::vector<ExampleScore> out;
  size_t row = 0;
  for (const int64_t count : counts) {
    ExampleScore score{.targets = static_cast<double>(count)};
    for (const size_t end = row + static_cast<size_t>(count); row < end; ++row) {
      if (row >= loss.size())
        fail(Fault::internal, "test examples: the examples have more targets than the batch, which has ",
             loss.size(), ".");
      score.loss += loss[row];
      score.right += correct[row];
    }
    out.push_back(score);
  }
  return out;
}

}  // namespace heed
