// Causal sums of exponentials, rescaled as a scan with decay.
#include "heed/attention/support/running_exponential.h"

namespace heed {

Tensor ExponentialAttention::raise_scale(ScaledSumCache* cache, const Tensor& scale) {
  Tensor larger = scale.detach();
  if (cache == nullptr) return larger;
  if (cache->sums) {
    larger = maximum(larger, cache->scale);
    cache->sums = cache->sums * transpose(exp(cache->scale - larger), 2, 3);
  }
  cache->scale = larger;
  return larger;
}

Tensor ExponentialAttention::running_max(const Tensor& x, const Tensor& initial) {
  Tensor maxima = x.extent(3) == 1 ? x : max(x, 3);
  const int64_t length = maxima.extent(2);
  for (int64_t step = 1; step < length;
       step *= 2) {  // after it, row t holds the maximum of rows t - 2 step + 1..t
    maxima = concat(
        std::vector<Tensor>{slice(maxima, 2, 0, step),
                            maximum(slice(maxima, 2, step, length), slice(maxima, 2, 0, length - step))},
        2);
  }
  return initial ? maximum(maxima, initial) : maxima;
}

Tensor ExponentialAttention::scan(const Scaled& x, const Tensor& values, ScaledSumCache* cache) const {
  const int64_t keys = x.k.extent(2), queries = x.q.extent(2), f = x.k.extent(3);
  const bool has_cache = cache != nullptr && cache->sums;
  const Tensor initial_scale = has_cache ? cache->scale : slice(x.scale, 2, 0, 1);
  const Tensor previous_scale = concat(std::vector<Tensor>{initial_scale, slice(x.scale, 2, 0, keys - 1)}, 2);
  Tensor q = x.q;
  if (queries < keys) {  // the first keys have no queries: pad them
    const Tensor no_queries =
        Tensor::zeros(Shape{q.extent(0), q.extent(1), keys - queries, f}, q.dtype(), q.device());
    q = concat(std::vector<Tensor>{no_queries, q}, 2);
  }
  const Tensor ones =
      Tensor::full(Shape{values.extent(0), values.extent(1), keys, 1}, 1, values.dtype(), values.device());
  const Tensor y = decay_scan({.q = q,
                               .k = x.k,
                               .v = concat(std::vector<Tensor>{values, ones}, 3),
                               .log_decay = previous_scale - x.scale,
                               .beta = {},
                               .start = has_cache ? cache->sums : Tensor()},
                              /*keep_end=*/cache != nullptr);
  if (cache != nullptr) {
    cache->sums = slice(y, 2, keys, keys + f);
    cache->scale = slice(x.scale, 2, keys - 1, keys);
    cache->length += keys;
  }
  return slice(y, 2, keys - queries, keys);
}

Tensor ExponentialAttention::attend(Heads heads, const AttentionInput& input) {
  if (!input.mask.is_causal() || !heads.k || heads.k.extent(2) == 0)
    return KernelizedAttention::attend(std::move(heads), input);
  check(heads, input);
  auto* cache = cache_of<ScaledSumCache>(input);
  Scaled x = scaled(heads, input);
  if (const Tensor kept = input.mask.padding_mask(x.k, cache != nullptr ? cache->length : 0))
    x.k = x.k * kept;
  const auto attended = [&](const Tensor& values, ScaledSumCache* state) {
    const Tensor sums = scan(x, values, state);
    const int64_t width = sums.extent(3) - 1;
    return slice(sums, 3, 0, width) / row_divisor(slice(sums, 3, width, width + 1), polynomial());
  };
  record_map(input, [&] { return attended(identity_values(x.k), nullptr); });
  return attended(heads.v, cache);
}

}  // namespace heed
