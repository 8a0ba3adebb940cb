// Greedy decoding of a batch whose finished rows leave.
#include "heed/train/decode/greedy.h"

#include <algorithm>
#include <numeric>

namespace heed {
namespace {

/// Index of the first maximum; 0 when all are NaN.
int32_t first_largest(const float* x, int64_t count) {
  const float* found = std::find(x, x + count, largest(x, count));
  return found == x + count ? 0 : static_cast<int32_t>(found - x);
}

}  // namespace

std::vector<Hypothesis> greedy(const AutoregressiveModel& model, Decoding state,
                               const std::vector<int64_t>& max_lengths, const DecodeIds& ids) {
  const NoGrad no_grad;
  std::vector<Hypothesis> out(max_lengths.size());
  std::vector<size_t> active(max_lengths.size());
  std::iota(active.begin(), active.end(), size_t{0});
  std::vector<int32_t> last(max_lengths.size(), ids.start);
  while (!active.empty()) {
    const NextTokenScores next(model, last, state, ids);
    std::vector<size_t> unfinished;
    std::vector<int32_t> kept;
    last.clear();
    for (size_t row = 0; row < active.size(); ++row) {
      const auto index = static_cast<int64_t>(row);
      const int32_t best = first_largest(next.logits(index), next.vocabulary);
      Hypothesis& hypothesis = out[active[row]];
      hypothesis.score += next.log(index)[best];
      if (best == ids.end) continue;
      hypothesis.ids.push_back(best);
      if (static_cast<int64_t>(hypothesis.ids.size()) >= max_lengths[active[row]]) continue;
      unfinished.push_back(active[row]);
      kept.push_back(static_cast<int32_t>(row));
      last.push_back(best);
    }
    if (kept.size() < active.size() && !kept.empty()) state.reorder(kept);
    active = std::move(unfinished);
  }
  return out;
}

}  // namespace heed
