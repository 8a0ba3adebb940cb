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
  const int64_t width = logits.extent(-1), rows = logits.size() / std::max<int64_t>(width, 1);
  const std::vector<float> values = logits.to_host();
  const std::vector<double> wanted = targets.to_doubles();
  std::vector<double> loss(wanted.size()), right(wanted.size());
  parallel_rows(std::min(rows, static_cast<int64_t>(wanted.size())), 16, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      if (wanted[static_cast<size_t>(row)] < 0) continue;
      const float* x = values.data() + row * width;
      const float* largest = std::max_element(x, x + width);
      double sum = 0;
      for (int64_t i = 0; i < width; ++i) sum += std::exp(static_cast<double>(x[i]) - *largest);
      const auto target = static_cast<int64_t>(wanted[static_cast<size_t>(row)]);
      loss[static_cast<size_t>(row)] = std::log(sum) + *largest - x[target];
      right[static_cast<size_t>(row)] = largest - x == target ? 1 : 0;
    }
  });
  std::vector<ExampleScore> out;
  size_t at = 0;
  for (const int64_t count : counts) {
    ExampleScore score{.targets = static_cast<double>(count)};
    for (const size_t end = at + static_cast<size_t>(count); at < end; ++at) {
      if (at >= loss.size())
        fail(Fault::internal, "test examples: the examples have more targets than the batch, which has ",
             loss.size(), ".");
      score.loss += loss[at];
      score.right += right[at];
    }
    out.push_back(score);
  }
  return out;
}

}  // namespace heed
