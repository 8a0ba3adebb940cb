// Greedy decoding: each step takes the most probable token of every row, and removes finished rows.
#include "heed/train/decode/greedy.h"

#include <algorithm>
#include <numeric>

#include "heed/train/decode/decoding_batch.h"

namespace heed {
namespace {

/// Index of the first maximum of numbers without NaN.
int32_t index_of_largest(const float* x, int64_t count) {
  return static_cast<int32_t>(std::find(x, x + count, largest(x, count)) - x);
}

}  // namespace

std::vector<Hypothesis> greedy_batch(const AutoregressiveModel& model,
                                     const std::vector<std::vector<int32_t>>& prompts,
                                     const GreedyOptions& options, std::optional<Decoding> state) {
  const NoGrad no_grad;
  DecodingBatch batch("greedy", model, prompts, options.stop_tokens, std::move(state),
                      DecodingBatch::WhenFull::restart);
  const std::vector<int64_t> limits = batch.limits(options.max_new_tokens, options.max_new_tokens_of_each);
  std::vector<Hypothesis> out(prompts.size());
  std::vector<size_t> active(prompts.size());  // output of each row of the batch
  std::iota(active.begin(), active.end(), size_t{0});
  if (std::ranges::count(limits, 0) > 0) return out;  // then all limits are 0
  while (!active.empty()) {
    const NextTokenScores next("greedy", batch.read(), options.forbidden_tokens);
    std::vector<size_t> unfinished;
    std::vector<int32_t> unfinished_rows;
    for (size_t row = 0; row < active.size(); ++row) {
      if (!batch.is_given(row)) {
        const auto index = static_cast<int64_t>(row);
        const int32_t best = index_of_largest(next.logits(index), next.vocabulary);
        Hypothesis& hypothesis = out[active[row]];
        hypothesis.score += next.log(index)[best];
        if (batch.is_stop(best)) continue;
        hypothesis.ids.push_back(best);
        if (static_cast<int64_t>(hypothesis.ids.size()) >= limits[active[row]]) continue;
        batch.append(row, best);
      }
      unfinished.push_back(active[row]);
      unfinished_rows.push_back(static_cast<int32_t>(row));
    }
    batch.reorder(unfinished_rows);
    active = std::move(unfinished);
  }
  return out;
}

std::vector<int32_t> greedy(const AutoregressiveModel& model, const std::vector<int32_t>& prompt,
                            const GreedyOptions& options, std::optional<Decoding> state) {
  return greedy_batch(model, {prompt}, options, std::move(state))[0].ids;
}

}  // namespace heed
