// Residual blocks.
#include "nn/block.h"

namespace heed {

Block::Block(const BlockOptions& options, std::unique_ptr<Attention> self, std::unique_ptr<Attention> across,
             Rng& rng)
    : attention(std::move(self)),
      cross(std::move(across)),
      feed_forward(options.width, options.feed_forward, options.forward, rng),
      attention_norm(options.width, options.norm),
      forward_norm(options.width, options.norm),
      cross_norm(cross ? std::make_unique<LayerNorm>(options.width, options.norm) : nullptr),
      options_(options) {}

Tensor Block::operator()(const Tensor& input, const Mask& mask, const Tensor& encoded,
                         const Mask& encoded_mask, BlockMemory* memory, const Pass& pass) const {
  const Within within(this);
  const bool pre = options_.norm_place == NormPlace::pre;
  // The same two lines for every part of the block: the norm before or after, the residual around.
  const auto residual = [&](const Tensor& x, const LayerNorm& norm, const auto& part) {
    const Tensor y = dropout(part(pre ? norm(x) : x), options_.dropout, pass.noise);
    return pre ? x + y : norm(x + y);
  };
  Tensor x = residual(input, attention_norm, [&](const Tensor& h) {
    return attention->forward({h, h, mask, memory != nullptr ? memory->self.get() : nullptr, pass});
  });
  if (cross) {
    x = residual(x, *cross_norm, [&](const Tensor& h) {
      return cross->forward(
          {h, encoded, encoded_mask, memory != nullptr ? memory->cross.get() : nullptr, pass});
    });
  }
  return residual(x, forward_norm, [&](const Tensor& h) { return feed_forward(h, pass.noise); });
}

BlockMemory Block::start() const {
  BlockMemory memory{attention->start(), cross ? cross->start() : nullptr};
  if (!memory.self || (cross && !memory.cross)) {
    fail("decode: an attention of this model cannot go step by step. `heed list attention` says which can.");
  }
  return memory;
}

void Block::fields(Fields& f) {
  f("attention", attention);
  f("cross", cross);
  f("feed_forward", feed_forward);
  f("attention_norm", attention_norm);
  f("cross_norm", cross_norm);
  f("forward_norm", forward_norm);
}

}  // namespace heed
