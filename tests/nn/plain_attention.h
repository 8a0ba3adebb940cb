// Attention from public ops only, for tests of nn and rung 4 of the battery's ladder.
#pragma once

#include <cmath>

#include "heed/nn/attention.h"
#include "heed/nn/linear.h"

namespace heed {

/// Scaled dot-product attention. Its cache holds the inputs of keys instead of their projections.
class PlainAttention final : public Attention {
 public:
  struct Inputs final : AttentionCache {
    Tensor seen;  ///< [B, T, width]
    void fields(Fields& f) override { f("seen", seen); }
  };

  PlainAttention(const AttentionConfig& config, Rng& rng)
      : query(config.d_model, config.d_model, rng, {.bias = config.query_bias}),
        key(config.d_model, config.d_model, rng, {.bias = config.key_bias}),
        value(config.d_model, config.d_model, rng, {.bias = config.value_bias}),
        output(config.d_model, config.d_model, rng, {.bias = config.output_bias}),
        config_(config) {
    if (config.d_model % config.heads != 0)
      fail("plain attention: ", config.heads, " heads for a width of ", config.d_model, ".");
  }

  Tensor forward(const AttentionInput& given) override {
    const AttentionInput input = with_finite_padding(given, config_.cross);
    Tensor seen = input.keys;
    int64_t first_query = 0;
    if (input.cache != nullptr) {
      auto* cache = dynamic_cast<Inputs*>(input.cache);
      if (cache == nullptr) fail("plain attention: this cache belongs to another attention.");
      first_query = cache->length;
      if (seen && cache->seen) seen = concat(std::vector<Tensor>{cache->seen, seen}, 1);
      if (!seen) seen = cache->seen;
      if (seen) cache->length = seen.extent(1);
      cache->seen = seen;
      cache->queries += input.queries.extent(1);
    }
    if (!seen) fail("plain attention: there are no keys, neither given nor remembered.");
    const Tensor q = split(query(input.queries)), k = split(key(seen)), v = split(value(seen));
    Tensor scores = matmul(q, transpose(k, 2, 3)) * (1 / std::sqrt(static_cast<double>(q.extent(3))));
    if (const Tensor mask = input.mask.dense(scores, first_query)) scores = scores + mask;
    const Tensor map = softmax(scores);
    if (input.context.recorder != nullptr) input.context.recorder->record(*this, map);
    const Tensor y = matmul(dropout(map, config_.dropout, input.context.rng), v);
    return output(reshape(transpose(y, 1, 2), input.queries.shape()));
  }
  std::unique_ptr<AttentionCache> new_cache() const override { return std::make_unique<Inputs>(); }
  void fields(Fields& f) override {
    f("query", query);
    f("key", key);
    f("value", value);
    f("output", output);
  }

  Linear query, key, value, output;

 private:
  Tensor split(const Tensor& x) const {
    return transpose(reshape(x, Shape{x.extent(0), x.extent(1), config_.heads, -1}), 1, 2);
  }
  AttentionConfig config_;
};

/// Creates it, as an attention factory.
inline std::unique_ptr<Attention> plain_attention(const AttentionConfig& config, Rng& rng) {
  return std::make_unique<PlainAttention>(config, rng);
}

}  // namespace heed
