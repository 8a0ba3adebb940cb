// Greedy decoding: each step takes the most probable token of every row, and removes finished rows.
#include "heed/train/decode/greedy.h"

#include <algorithm>
#include <numeric>

namespace heed {
namespace {

/// Index of the first maximum; 0 when all numbers are NaN.
int32_t index_of_largest(const float* x, int64_t count) {
  const float* maximum = std::find(x, x + count, largest(x, count));
  return maximum == x + count ? 0 : static_cast<int32_t>(maximum - x);
}

}  // namespace

std::vector<Hypothesis> greedy(const AutoregressiveModel& model, Decoding state,
                               const std::vector<int64_t>& max_lengths, const DecodeIds& ids) {
  const NoGrad no_grad;
  std::vector<Hypothesis> out(max_lengths.size());
  std::vector<size_t> active(max_lengths.size());  // output of each row of the batch
  std::iota(active.begin(), active.end(), size_t{0});
  std::vector<int32_t> last_tokens(max_lengths.size(), ids.start);
  while (!active.empty()) {
    const NextTokenScores next(model, last_tokens, state, ids);
    std::vector<size_t> unfinished;
    std::vector<int32_t> unfinished_rows;
    last_tokens.clear();
    for (size_t row = 0; row < active.size(); ++row) {
      const auto index = static_cast<int64_t>(row);
      const int32_t best = index_of_largest(next.logits(index), next.vocabulary);
      Hypothesis& hypothesis = out[active[row]];
      hypothesis.score += next.log(index)[best];
      if (best == ids.end) continue;
      hypothesis.ids.push_back(best);
      if (static_cast<int64_t>(hypothesis.ids.size()) >= max_lengths[active[row]]) continue;
      unfinished.push_back(active[row]);
      unfinished_rows.push_back(static_cast<int32_t>(row));
      last_tokens.push_back(best);
    }
    if (unfinished_rows.size() < active.size() && !unfinished_rows.empty()) state.reorder(unfinished_rows);
    active = std::move(unfinished);
  }
  return out;
}

}  // namespace heed
