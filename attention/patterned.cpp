// Patterns asked for, kept and run.
#include "attention/patterned.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace heed {

void KeySet::range(int64_t first, int64_t last) {
  if (first < last) runs_.emplace_back(first, last);
}

std::shared_ptr<const kernel::Pattern> PatternedAttention::pattern(int64_t first_query, int64_t queries,
                                                                   int64_t length, bool causal) const {
  const std::array<int64_t, 4> wanted{first_query, queries, length, causal ? 1 : 0};
  if (last_ && last_for_ == wanted) return last_;
  auto pattern = std::make_shared<kernel::Pattern>();
  pattern->heads = same_for_all_heads() ? 1 : config().heads;
  pattern->queries = queries;
  pattern->keys = length;
  pattern->first.push_back(0);
  KeySet set;
  for (int64_t head = 0; head < pattern->heads; ++head) {
    for (int64_t i = 0; i < queries; ++i) {
      const int64_t end = causal ? std::min(length, first_query + i + 1) : length;
      set.runs_.clear();
      keys(head, first_query + i, length, set);
      std::sort(set.runs_.begin(), set.runs_.end());
      // Runs that touch or overlap become one: a key counts once.
      int64_t reached = 0;
      const size_t own = pattern->runs.size();
      for (const auto& [first, last] : set.runs_) {
        const int64_t begin = std::max(first, reached);
        const int64_t stop = std::min(last, end);
        if (begin >= stop) continue;
        if (pattern->runs.size() > own && pattern->runs.back().end == begin) {
          pattern->runs.back().end = static_cast<int32_t>(stop);
        } else {
          pattern->runs.push_back({static_cast<int32_t>(begin), static_cast<int32_t>(stop)});
        }
        reached = stop;
      }
      pattern->first.push_back(static_cast<int64_t>(pattern->runs.size()));
    }
  }
  last_ = pattern;
  last_for_ = wanted;
  return last_;
}

Tensor PatternedAttention::score(const Tensor& q, const Tensor& k, const Attend&) const {
  return matmul(q, transpose(k, 2, 3)) * (1 / std::sqrt(static_cast<double>(head_width())));
}

Tensor PatternedAttention::weigh(const Tensor& scores, const Tensor& q, const Attend& call) const {
  return ScoredAttention::weigh(scores, q, call);
}

Tensor PatternedAttention::attend(Heads heads, const Attend& call) {
  if (call.mask.bias())
    fail("attention: a sparse pattern takes no bias on its scores. Leave the bias out, or use softmax.");
  const int64_t first_query = recall(heads, call);
  const int64_t queries = heads.q.extent(2), length = heads.k.extent(2);
  const auto shape = pattern(first_query, queries, length, call.mask.is_causal());
  if (call.pass.probe != nullptr) {
    const NoTape looking;
    std::vector<float> allowed(static_cast<size_t>(shape->heads * queries * length),
                               -std::numeric_limits<float>::infinity());
    for (int64_t row = 0; row < shape->heads * queries; ++row) {
      for (int64_t r = shape->first[static_cast<size_t>(row)]; r < shape->first[static_cast<size_t>(row) + 1];
           ++r) {
        const auto& run = shape->runs[static_cast<size_t>(r)];
        std::fill(allowed.begin() + row * length + run.begin, allowed.begin() + row * length + run.end, 0.0f);
      }
    }
    const Tensor bias = cast(Tensor::from(allowed, Shape{1, shape->heads, queries, length}), heads.q.dtype());
    Attend seen = call;
    seen.mask = call.mask.with(bias);
    call.pass.probe->see(*this, weights(heads, seen, first_query));
  }
  return block_attention(heads.q, heads.k, heads.v,
                         {.scale = 1 / std::sqrt(static_cast<double>(head_width())),
                          .pattern = shape,
                          .key_lengths = call.mask.key_lengths()});
}

}  // namespace heed
