// The forward pass of a transformer block.
#include "heed/nn/block.h"

namespace heed {

Block::Block(const BlockOptions& options, std::unique_ptr<Attention> self_attention,
             std::unique_ptr<Attention> cross_attention, Rng& rng)
    : attention(std::move(self_attention)),
      cross(std::move(cross_attention)),
      feed_forward(options.feed_forward != 0 ? std::make_unique<FeedForward>(
                                                   options.width, options.feed_forward, options.forward, rng)
                                             : nullptr),
      attention_norm(options.width, options.norm),
      forward_norm(feed_forward ? std::make_unique<LayerNorm>(options.width, options.norm) : nullptr),
      cross_norm(cross ? std::make_unique<LayerNorm>(options.width, options.norm) : nullptr),
      short_convolution(options.short_convolution > 0
                            ? std::make_unique<ShortConvolution>(options.width, options.short_convolution,
                                                                 options.causal, rng)
                            : nullptr),
      options_(options) {
  legal_dropout("Block: dropout", options.dropout);
}

Tensor Block::operator()(const Tensor& input, const Mask& mask, const Tensor& encoded,
                         const Mask& encoded_mask, BlockCache* cache, const ForwardContext& context) const {
  const ModuleScope within(this);
  ResidualStream stream(input, mask, context);
  add_to(stream, mask, encoded, encoded_mask, cache, context);
  return stream.x();
}

void Block::add_to(ResidualStream& stream, const Mask& mask, const Tensor& encoded, const Mask& encoded_mask,
                   BlockCache* cache, const ForwardContext& context) const {
  const ModuleScope within(this);
  const bool pre = options_.norm_place == NormPlace::pre;
  // Adds one branch of the block to x: x + branch(norm(x)), or norm(x + branch(x)).
  const auto residual = [&](const LayerNorm& norm, const auto& branch) {
    stream.add(branch(pre ? stream.normalised(norm) : stream.x()), options_.dropout);
    if (!pre) stream.normalise(norm);
  };
  residual(attention_norm, [&](const Tensor& given) {
    AttentionCache* convolution_cache = cache != nullptr ? cache->convolution.get() : nullptr;
    Tensor h = short_convolution ? (*short_convolution)(given, mask, convolution_cache) : given;
    if (context.editor != nullptr) h = context.editor->edit_input(*attention, h);
    return attend(*attention, {h, h, mask, cache != nullptr ? cache->self.get() : nullptr, context});
  });
  if (cross) {
    residual(*cross_norm, [&](const Tensor& h) {
      return attend(*cross,
                    {h, encoded, encoded_mask, cache != nullptr ? cache->cross.get() : nullptr, context});
    });
  }
  if (feed_forward) {
    residual(*forward_norm,
             [&](const Tensor& h) { return (*feed_forward)(h, context.rng, stream.places()); });
  }
}

BlockCache Block::new_cache() const {
  BlockCache cache{attention->new_cache(), cross ? cross->new_cache() : nullptr,
                   short_convolution ? short_convolution->new_cache() : nullptr};
  if (!cache.self || (cross && !cache.cross) || (short_convolution && !cache.convolution)) {
    fail(
        "decode: an attention of this model cannot decode step by step. `heed list attention` shows which "
        "can.");
  }
  return cache;
}

void Block::fields(Fields& f) {
  f("short_convolution", short_convolution);
  f("attention", attention);
  f("cross", cross);
  f("feed_forward", feed_forward);
  f("attention_norm", attention_norm);
  f("cross_norm", cross_norm);
  f("forward_norm", forward_norm);
}

}  // namespace heed
