// Attention made of public ops alone: what tests of nn host, and rung 4 of the ladder for the battery.
#pragma once

#include <cmath>

#include "nn/attention.h"
#include "nn/linear.h"

namespace heed {

/// Scaled dot products. Its memory holds the inputs of the keys, not their projections.
class PlainAttention final : public Attention {
 public:
  struct Inputs final : Memory {
    Tensor seen;  ///< [B, T, width]
    void fields(Fields& f) override { f("seen", seen); }
  };

  PlainAttention(const AttentionConfig& config, Rng& rng)
      : query(config.width, config.width, rng, {.bias = config.input_bias}),
        key(config.width, config.width, rng, {.bias = config.input_bias}),
        value(config.width, config.width, rng, {.bias = config.input_bias}),
        output(config.width, config.width, rng, {.bias = config.output_bias}),
        config_(config) {
    if (config.width % config.heads != 0)
      fail("plain attention: ", config.heads, " heads for a width of ", config.width, ".");
  }

  Tensor forward(const Attend& call) override {
    Tensor seen = call.keys;
    int64_t first_query = 0;
    if (call.memory != nullptr) {
      auto* memory = dynamic_cast<Inputs*>(call.memory);
      if (memory == nullptr) fail("plain attention: this memory is another attention's.");
      first_query = memory->length;
      if (seen && memory->seen) seen = concat(std::vector<Tensor>{memory->seen, seen}, 1);
      if (!seen) seen = memory->seen;
      if (seen) memory->length = seen.extent(1);
      memory->seen = seen;
      memory->queries += call.queries.extent(1);
    }
    if (!seen) fail("plain attention: there are no keys, neither given nor remembered.");
    const Tensor q = split(query(call.queries)), k = split(key(seen)), v = split(value(seen));
    Tensor scores = matmul(q, transpose(k, 2, 3)) * (1 / std::sqrt(static_cast<double>(q.extent(3))));
    if (const Tensor mask = call.mask.dense(scores, first_query)) scores = scores + mask;
    const Tensor map = softmax(scores);
    if (call.pass.probe != nullptr) call.pass.probe->see(*this, map);
    const Tensor y = matmul(dropout(map, config_.dropout, call.pass.noise), v);
    return output(reshape(transpose(y, 1, 2), call.queries.shape()));
  }
  std::unique_ptr<Memory> start() const override { return std::make_unique<Inputs>(); }
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

/// A factory for hosts.
inline std::unique_ptr<Attention> plain_attention(const AttentionConfig& config, Rng& rng) {
  return std::make_unique<PlainAttention>(config, rng);
}

}  // namespace heed
