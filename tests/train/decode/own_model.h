// A small language model of its own, without TransformerStack: it decodes with a cache and a state tensor.
#pragma once

#include "heed/attention/variant.h"
#include "heed/nn/embedding.h"
#include "heed/nn/linear.h"
#include "heed/nn/position.h"
#include "heed/nn/transformer.h"

namespace heed {

/// Token and position embeddings, then a causal convolution of width 2 and a causal attention, each with a
/// residual connection, and an output layer.
class OwnModel final : public AutoregressiveModel {
 public:
  OwnModel(int64_t vocabulary, int64_t max_length, const AttentionFactory& attend, Rng& rng)
      : tokens(vocabulary, 8, Init::normal, rng, 1),
        positions(PositionKind::learned, max_length, 8, rng, 0.5),
        convolution(16, 8, rng),
        attention(attend({.d_model = 8, .heads = 2, .causal = true, .max_length = max_length}, rng)),
        output(8, vocabulary, rng),
        max_length_(max_length) {
    fill_normal(output.weight, 0, 1, rng);
  }
  /// ids i32 [B, T] -> logits [B, T, V].
  Tensor operator()(const Tensor& ids, const ForwardContext& context) const {
    Tensor last;
    return output(hidden(ids, 0, last, nullptr, context));
  }
  Tensor next(const Tensor& ids, Decoding& state) const override {
    const Tensor h =
        hidden(ids, state.length, state.tensors[0], state.cache[0].self.get(), {.editor = state.editor});
    state.length += ids.extent(1);
    return output(last_position(h));
  }
  Decoding start() const override {
    Decoding state;
    state.cache.push_back({attention->new_cache()});
    state.tensors.resize(1);  // the last input of the convolution
    return state;
  }
  int64_t max_length() const override { return max_length_; }
  void fields(Fields& f) override {
    f("tokens", tokens);
    f("positions", positions);
    f("convolution", convolution);
    f("attention", attention);
    f("output", output);
  }

  Embedding tokens;
  Position positions;
  Linear convolution;  // reads the inputs at t and t - 1
  std::unique_ptr<Attention> attention;
  Linear output;

 private:
  /// `last` [B, 1, 8] is the input before these ids, and becomes their last; empty: there is none.
  Tensor hidden(const Tensor& ids, int64_t first, Tensor& last, AttentionCache* cache,
                const ForwardContext& context) const {
    const int64_t length = ids.extent(1);
    Tensor x = positions(tokens(ids), first);
    const Tensor before = last ? last : Tensor::zeros(Shape{ids.extent(0), 1, 8});
    const Tensor earlier =
        length > 1 ? concat(std::vector<Tensor>{before, slice(x, 1, 0, length - 1)}, 1) : before;
    last = slice(x, 1, length - 1, length);
    x = x + convolution(concat(std::vector<Tensor>{x, earlier}, 2));
    return x + attention->forward(
                   {.queries = x, .keys = x, .mask = Mask::causal(), .cache = cache, .context = context});
  }
  int64_t max_length_;
};

}  // namespace heed
