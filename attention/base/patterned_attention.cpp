// Builds, caches and applies sparse patterns.
#include "heed/attention/base/patterned_attention.h"

#include <algorithm>
#include <limits>

#include "heed/core/sparse_pattern.h"

namespace heed {

void KeySet::add_range(int64_t first, int64_t last) {
  if (first < last) runs_.emplace_back(first, last);
}

PatternedAttention::PatternedAttention(const AttentionConfig& config, Rng& rng, double scale)
    : ScoredAttention(config, rng), scale_(scale) {}

std::unique_ptr<AttentionCache> PatternedAttention::new_cache() const {
  auto cache = std::make_unique<KeyValueCache>();
  if (config().causal && !config().cross) {
    cache->window = window();
    cache->num_first_keys = num_first_keys();
  }
  return cache;
}

PatternedAttention::Call PatternedAttention::call_of(const Heads& heads, const AttentionInput& input,
                                                     int64_t first_query) const {
  // A cache that drops keys returns those in the window, after the first ones.
  const int64_t present = heads.k.extent(2);
  const int64_t length = input.cache != nullptr ? input.cache->length : present;
  const auto* cache = dynamic_cast<const KeyValueCache*>(input.cache);
  const int64_t num_prepended = cache != nullptr ? cache->num_prepended : 0;
  return {.first_query = first_query,
          .queries = heads.q.extent(2),
          .length = length,
          .num_prepended = num_prepended,
          .first_key = length - (present - num_prepended),
          .causal = input.mask.is_causal(),
          .pattern_version = pattern_version()};
}

std::shared_ptr<const kernel::Pattern> PatternedAttention::pattern(const Call& call) const {
  return patterns_.get(call, [&] { return make_pattern(call); });
}

kernel::Pattern PatternedAttention::make_pattern(const Call& call) const {
  kernel::Pattern pattern;
  pattern.heads = heads_share_pattern() ? 1 : config().heads;
  pattern.queries = call.queries;
  pattern.keys = call.num_keys();
  pattern.first.reserve(static_cast<size_t>(pattern.heads * call.queries + 1));
  pattern.first.push_back(0);
  KeySet set;
  for (int64_t head = 0; head < pattern.heads; ++head) {
    for (int64_t i = 0; i < call.queries; ++i) {
      const int64_t end = call.causal ? std::min(call.length, call.first_query + i + 1) : call.length;
      set.runs_.clear();
      keys(head, call.first_query + i, call.length, set);
      std::sort(set.runs_.begin(), set.runs_.end());
      // Runs that touch or overlap are merged, so that a key counts once.
      const size_t first_run = pattern.runs.size();
      const auto add = [&](int64_t begin, int64_t stop, int64_t num_dropped) {
        if (begin >= stop) return;
        const auto from = static_cast<int32_t>(begin - num_dropped),
                   to = static_cast<int32_t>(stop - num_dropped);
        if (pattern.runs.size() > first_run && pattern.runs.back().end == from) {
          pattern.runs.back().end = to;
        } else {
          pattern.runs.push_back({from, to});
        }
      };
      int64_t covered = 0;  // keys below this are in earlier runs or in none
      for (const auto& [first, last] : set.runs_) {
        const int64_t begin = std::max(first, covered), stop = std::min(last, end);
        add(begin, std::min(stop, call.num_prepended), 0);
        add(std::max(begin, call.first_key), stop, call.first_key - call.num_prepended);
        covered = std::max(covered, stop);
      }
      pattern.first.push_back(static_cast<int64_t>(pattern.runs.size()));
    }
  }
  return pattern;
}

Tensor PatternedAttention::score(const Tensor& q, const Tensor& k, const AttentionInput&) const {
  return matmul(q, transpose(k, 2, 3)) * scale(q);
}

Tensor PatternedAttention::dense_map(const Heads& heads, const AttentionInput& input,
                                     int64_t first_query) const {
  const NoGrad no_grad;
  const Call call = call_of(heads, input, first_query);
  const auto pattern = this->pattern(call);
  const int64_t queries = pattern->queries, length = call.length;
  // The table is as large as the map, so it is a tensor: the memory of tensors has a cap.
  const Tensor table = Tensor::full(Shape{1, pattern->heads, queries, length},
                                    -std::numeric_limits<double>::infinity(), DType::f32, Device::cpu);
  auto* bias = table.data<float>();
  for (int64_t row = 0; row < pattern->heads * queries; ++row) {
    for (auto r = static_cast<size_t>(pattern->first[static_cast<size_t>(row)]);
         r < static_cast<size_t>(pattern->first[static_cast<size_t>(row) + 1]); ++r) {
      for (int64_t n = pattern->runs[r].begin; n < pattern->runs[r].end; ++n)
        bias[row * length + call.position(n)] = 0;
    }
  }
  AttentionInput masked = input;
  masked.mask = input.mask.with(cast(table.to(heads.q.device()), heads.q.dtype()));
  Heads all = heads;
  if (const int64_t num_dropped = call.first_key - call.num_prepended; num_dropped > 0) {
    // Zeros take the place of dropped keys, which get weight 0.
    Shape shape = heads.k.shape();
    shape[2] = num_dropped;
    const Tensor dropped = Tensor::zeros(shape, heads.k.dtype(), heads.k.device());
    all.k = concat(std::vector<Tensor>{slice(heads.k, 2, 0, call.num_prepended), dropped,
                                       slice(heads.k, 2, call.num_prepended, heads.k.extent(2))},
                   2);
  }
  return weights(all, masked, first_query);
}

/// The number of cached keys of each sequence, from its number of all keys.
Tensor PatternedAttention::cached_lengths(const Tensor& lengths, const Call& call) {
  if (!lengths || call.first_key == 0) return lengths;
  const Tensor all = cast(lengths, DType::f32);
  const Tensor missing_prepended = relu(affine(all, -1, static_cast<double>(call.num_prepended))),
               recent = relu(all - static_cast<double>(call.first_key));
  return cast(recent - missing_prepended + static_cast<double>(call.num_prepended), DType::i32);
}

kernel::PatternParams PatternedAttention::pattern_params(const Heads& heads, const AttentionInput& input,
                                                         int64_t first_query) const {
  const Call call = call_of(heads, input, first_query);
  const kernel::AttentionParams common = params(input, scale(heads.q));
  return {.scale = common.scale,
          .pattern = pattern(call),
          .key_lengths = cached_lengths(input.mask.key_lengths(), call),
          .dropout = common.dropout,
          .draw = common.draw};
}

Tensor PatternedAttention::attend_pattern(const Heads& heads, const AttentionInput& input,
                                          int64_t first_query) const {
  return pattern_attention(heads.q, heads.k, heads.v, pattern_params(heads, input, first_query));
}

Tensor PatternedAttention::attend(Heads heads, const AttentionInput& input) {
  refuse_bias(input, "a sparse pattern");
  const int64_t first_query = read_cache(heads, input);
  if (input.context.recorder != nullptr)
    input.context.recorder->factors(*this, heads.q, heads.k, scale(heads.q));
  record_map(input, [&] { return dense_map(heads, input, first_query); });
  return attend_pattern(heads, input, first_query);
}

}  // namespace heed
