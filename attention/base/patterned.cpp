// Builds, caches and applies sparse patterns.
#include "heed/attention/base/patterned.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "heed/core/sparse_pattern.h"

namespace heed {

void KeySet::range(int64_t first, int64_t last) {
  if (first < last) runs_.emplace_back(first, last);
}

PatternedAttention::PatternedAttention(const AttentionConfig& config, Rng& rng, double scale)
    : ScoredAttention(config, rng), scale_(scale) {}

std::unique_ptr<AttentionCache> PatternedAttention::new_cache() const {
  auto cache = std::make_unique<KeyValueCache>();
  if (config().causal && !config().cross) {
    cache->reach = reach();
    cache->anchors = anchors();
  }
  return cache;
}

double PatternedAttention::scale(const Tensor& q) const {
  return scale_ != 0 ? scale_ : 1 / std::sqrt(static_cast<double>(q.extent(3)));
}

PatternedAttention::Asked PatternedAttention::asked(const Heads& heads, const AttentionInput& input,
                                                    int64_t first_query) const {
  // A cache that drops keys returns the last ones, and possibly the first.
  const int64_t present = heads.k.extent(2);
  const int64_t total = input.cache != nullptr ? input.cache->length : present;
  const auto* kept = dynamic_cast<const KeyValueCache*>(input.cache);
  const int64_t front = kept != nullptr ? kept->front : 0;
  return {.first_query = first_query,
          .queries = heads.q.extent(2),
          .length = total,
          .front = front,
          .first_key = total - (present - front),
          .causal = input.mask.is_causal(),
          .edition = edition()};
}

std::shared_ptr<const kernel::Pattern> PatternedAttention::pattern(const Asked& asked) const {
  return patterns_.get(asked, [&] { return make_pattern(asked); });
}

kernel::Pattern PatternedAttention::make_pattern(const Asked& asked) const {
  kernel::Pattern pattern;
  pattern.heads = same_for_all_heads() ? 1 : config().heads;
  pattern.queries = asked.queries;
  pattern.keys = asked.keys();
  pattern.first.reserve(static_cast<size_t>(pattern.heads * asked.queries + 1));
  pattern.first.push_back(0);
  KeySet set;
  for (int64_t head = 0; head < pattern.heads; ++head) {
    for (int64_t i = 0; i < asked.queries; ++i) {
      const int64_t end = asked.causal ? std::min(asked.length, asked.first_query + i + 1) : asked.length;
      set.runs_.clear();
      keys(head, asked.first_query + i, asked.length, set);
      std::sort(set.runs_.begin(), set.runs_.end());
      // Runs that touch or overlap are merged, so that a key counts once.
      int64_t reached = 0;
      const size_t own = pattern.runs.size();
      const auto add = [&](int64_t begin, int64_t stop, int64_t gap) {
        if (begin >= stop) return;
        const auto from = static_cast<int32_t>(begin - gap), to = static_cast<int32_t>(stop - gap);
        if (pattern.runs.size() > own && pattern.runs.back().end == from) {
          pattern.runs.back().end = to;
        } else {
          pattern.runs.push_back({from, to});
        }
      };
      for (const auto& [first, last] : set.runs_) {
        const int64_t begin = std::max(first, reached), stop = std::min(last, end);
        add(begin, std::min(stop, asked.front), 0);
        add(std::max(begin, asked.first_key), stop, asked.first_key - asked.front);
        reached = std::max(reached, stop);
      }
      pattern.first.push_back(static_cast<int64_t>(pattern.runs.size()));
    }
  }
  return pattern;
}

Tensor PatternedAttention::score(const Tensor& q, const Tensor& k, const AttentionInput&) const {
  return matmul(q, transpose(k, 2, 3)) * scale(q);
}

Tensor PatternedAttention::weigh(const Tensor& scores, const Tensor& q, const AttentionInput& input) const {
  return ScoredAttention::weigh(scores, q, input);
}

Tensor PatternedAttention::dense_map(const Heads& heads, const AttentionInput& input,
                                     int64_t first_query) const {
  const NoGrad no_grad;
  const Asked wanted = asked(heads, input, first_query);
  const auto shape = pattern(wanted);
  const int64_t queries = shape->queries, length = wanted.length;
  // The table is as large as the map, so it is a tensor: the memory of tensors has a cap.
  const Tensor table = Tensor::full(Shape{1, shape->heads, queries, length},
                                    -std::numeric_limits<double>::infinity(), DType::f32, Device::cpu);
  auto* allowed = table.data<float>();
  for (int64_t row = 0; row < shape->heads * queries; ++row) {
    for (auto r = static_cast<size_t>(shape->first[static_cast<size_t>(row)]);
         r < static_cast<size_t>(shape->first[static_cast<size_t>(row) + 1]); ++r) {
      for (int64_t n = shape->runs[r].begin; n < shape->runs[r].end; ++n)
        allowed[row * length + wanted.position(n)] = 0;
    }
  }
  const Tensor bias = cast(table.to(heads.q.device()), heads.q.dtype());
  AttentionInput seen = input;
  seen.mask = input.mask.with(bias);
  Heads whole = heads;
  if (wanted.first_key > wanted.front) {
    // Dropped keys get weight 0.
    Shape gone = heads.k.shape();
    gone[2] = wanted.first_key - wanted.front;
    const Tensor blank = Tensor::zeros(gone, heads.k.dtype(), heads.k.device());
    const int64_t present = heads.k.extent(2);
    whole.k = concat(std::vector<Tensor>{slice(heads.k, 2, 0, wanted.front), blank,
                                         slice(heads.k, 2, wanted.front, present)},
                     2);
  }
  return weights(whole, seen, first_query);
}

/// The number of cached keys of each sequence, from its number of all keys.
Tensor PatternedAttention::present(const Tensor& lengths, const Asked& asked) {
  if (!lengths || asked.first_key == 0) return lengths;
  const Tensor all = cast(lengths, DType::f32);
  const Tensor beyond_front = relu(affine(all, -1, static_cast<double>(asked.front))),
               recent = relu(all - static_cast<double>(asked.first_key));
  return cast(recent - beyond_front + static_cast<double>(asked.front), DType::i32);
}

Tensor PatternedAttention::attend_pattern(const Heads& heads, const AttentionInput& input,
                                          int64_t first_query) const {
  const Asked wanted = asked(heads, input, first_query);
  const bool drop = input.context.training() && config().dropout > 0;
  return pattern_attention(heads.q, heads.k, heads.v,
                           {.scale = scale(heads.q),
                            .pattern = pattern(wanted),
                            .key_lengths = present(input.mask.key_lengths(), wanted),
                            .dropout = drop ? config().dropout : 0,
                            .draw = drop ? input.context.rng->next() : Draw{}});
}

Tensor PatternedAttention::attend(Heads heads, const AttentionInput& input) {
  if (input.mask.bias())
    fail("attention: a sparse pattern takes no bias on its scores. Leave the bias out, or use softmax.");
  const int64_t first_query = read_cache(heads, input);
  if (input.context.recorder != nullptr) {
    input.context.recorder->factors(*this, heads.q, heads.k, scale(heads.q));
    input.context.recorder->record(*this, dense_map(heads, input, first_query));
  }
  return attend_pattern(heads, input, first_query);
}

}  // namespace heed
