// Builds, caches and applies sparse patterns.
#include "heed/attention/base/patterned_attention.h"

#include <algorithm>
#include <limits>

#include "heed/core/sparse_pattern.h"

namespace heed {

void KeySet::add_range(int64_t first, int64_t end) {
  if (first < end) ranges_.emplace_back(first, end);
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
  // A cache that drops keys returns the first num_prepended ones and those in the window.
  const int64_t num_keys = heads.k.extent(2);
  const int64_t length = input.cache != nullptr ? input.cache->length : num_keys;
  const auto* cache = dynamic_cast<const KeyValueCache*>(input.cache);
  const int64_t num_prepended = cache != nullptr ? cache->num_prepended : 0;
  return {.first_query = first_query,
          .queries = heads.q.extent(2),
          .length = length,
          .num_prepended = num_prepended,
          .first_key = length - (num_keys - num_prepended),
          .causal = input.mask.is_causal(),
          .pattern_version = pattern_version()};
}

std::shared_ptr<const kernel::Pattern> PatternedAttention::pattern(const Call& call) const {
  return patterns_.get(call, [&] { return make_pattern(call); });
}

namespace {

/// Appends the run begin <= key < end to those of the row that starts at run `first_run`, joined to the row's
/// last run where they touch.
void append_run(kernel::Pattern& pattern, size_t first_run, int64_t begin, int64_t end) {
  if (begin >= end) return;
  if (pattern.runs.size() > first_run && pattern.runs.back().end == begin)
    pattern.runs.back().end = static_cast<int32_t>(end);
  else
    pattern.runs.push_back({static_cast<int32_t>(begin), static_cast<int32_t>(end)});
}

}  // namespace

kernel::Pattern PatternedAttention::make_pattern(const Call& call) const {
  kernel::Pattern pattern;
  pattern.heads = heads_share_pattern() ? 1 : config().heads;
  pattern.queries = call.queries;
  pattern.keys = call.num_keys();
  pattern.first.reserve(static_cast<size_t>(pattern.heads * call.queries + 1));
  pattern.first.push_back(0);
  KeySet set;
  for (int64_t row = 0; row < pattern.heads * call.queries; ++row) {
    const int64_t i = call.first_query + row % call.queries;
    const int64_t num_visible = call.causal ? std::min(call.length, i + 1) : call.length;
    set.ranges_.clear();
    keys(row / call.queries, i, call.length, set);
    std::sort(set.ranges_.begin(), set.ranges_.end());
    const size_t first_run = pattern.runs.size();
    int64_t num_covered = 0;  // keys below this are in earlier runs or in none, so that each counts once
    for (const auto& [first, range_end] : set.ranges_) {
      const int64_t begin = std::max(first, num_covered), end = std::min(range_end, num_visible);
      append_run(pattern, first_run, begin, std::min(end, call.num_prepended));
      append_run(pattern, first_run, std::max(begin, call.first_key) - call.num_dropped_keys(),
                 end - call.num_dropped_keys());
      num_covered = std::max(num_covered, end);
    }
    pattern.first.push_back(static_cast<int64_t>(pattern.runs.size()));
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
  // The bias is as large as the map, so it is a tensor: the memory of tensors has a cap.
  const Tensor bias = Tensor::full(Shape{1, pattern->heads, queries, length},
                                   -std::numeric_limits<double>::infinity(), DType::f32, Device::cpu);
  auto* bias_values = bias.data<float>();
  for (int64_t row = 0; row < pattern->heads * queries; ++row) {
    for (auto r = static_cast<size_t>(pattern->first[static_cast<size_t>(row)]);
         r < static_cast<size_t>(pattern->first[static_cast<size_t>(row) + 1]); ++r) {
      for (int64_t n = pattern->runs[r].begin; n < pattern->runs[r].end; ++n)
        bias_values[row * length + call.position(n)] = 0;
    }
  }
  AttentionInput masked = input;
  masked.mask = input.mask.with(cast(bias.to(heads.q.device()), heads.q.dtype()));
  return weights(with_dropped_keys(heads, call), masked, first_query);
}

Heads PatternedAttention::with_dropped_keys(const Heads& heads, const Call& call) {
  if (call.num_dropped_keys() == 0) return heads;
  Shape shape = heads.k.shape();
  shape[2] = call.num_dropped_keys();
  const Tensor dropped = Tensor::zeros(shape, heads.k.dtype(), heads.k.device());
  Heads all = heads;
  all.k = concat(std::vector<Tensor>{slice(heads.k, 2, 0, call.num_prepended), dropped,
                                     slice(heads.k, 2, call.num_prepended, heads.k.extent(2))},
                 2);
  return all;
}

Tensor PatternedAttention::cached_lengths(const Tensor& lengths, const Call& call) {
  if (!lengths || call.first_key == 0) return lengths;
  // min(length, num_prepended) + max(length - first_key, 0), in ops that run on the device
  const Tensor length = cast(lengths, DType::f32);
  const Tensor missing_prepended = relu(affine(length, -1, static_cast<double>(call.num_prepended))),
               recent = relu(length - static_cast<double>(call.first_key));
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
