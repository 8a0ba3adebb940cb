// Residual blocks around attention and a feed-forward network.
#pragma once

#include "nn/attention.h"
#include "nn/feed_forward.h"
#include "nn/norm.h"

namespace heed {

/// pre: x + f(norm(x)); post: norm(x + f(x)), as Vaswani et al. 2017.
enum class NormPlace { pre, post };

/// What all blocks of a model share.
struct BlockOptions {
  int64_t width = 256;
  int64_t feed_forward = 1024;
  double dropout = 0;
  NormPlace norm_place = NormPlace::pre;
  LayerNorm::Options norm = {};
  FeedForward::Options forward = {};
};

/// Memories of one block of a decoder.
struct BlockMemory {
  std::unique_ptr<Memory> self, cross;
};

/// Self-attention, cross-attention where one is given, feed-forward: each with its residual and norm.
class Block final : public Module {
 public:
  /// `cross` may be null: an encoder's or a language model's block.
  Block(const BlockOptions& options, std::unique_ptr<Attention> self, std::unique_ptr<Attention> cross,
        Rng& rng);

  /// x [B, T, width]. `encoded` [B, S, width] and its mask for cross-attention; with a memory x continues
  /// what it holds, and `encoded` may be empty once it has been remembered.
  Tensor operator()(const Tensor& x, const Mask& mask, const Tensor& encoded, const Mask& encoded_mask,
                    BlockMemory* memory, const Pass& pass) const;
  /// Empty memories. Fails when an attention of this block cannot go step by step.
  BlockMemory start() const;
  void fields(Fields& f) override;

  std::unique_ptr<Attention> attention, cross;
  FeedForward feed_forward;
  LayerNorm attention_norm, forward_norm;
  std::unique_ptr<LayerNorm> cross_norm;

 private:
  BlockOptions options_;
};

}  // namespace heed
