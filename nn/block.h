// Block: attention and a feed-forward network, each with a residual connection and a norm.
#pragma once

#include "heed/nn/attention.h"
#include "heed/nn/feed_forward.h"
#include "heed/nn/norm.h"
#include "heed/nn/residual_stream.h"
#include "heed/nn/short_convolution.h"

namespace heed {

/// The position of the norm. pre: x + f(norm(x)); post: norm(x + f(x)) (Vaswani et al. 2017).
enum class NormPlace { pre, post };

/// Options shared by all blocks of a model.
struct BlockOptions {
  int64_t width = 256;                    ///< d_model: of x and of all residual branches
  int64_t feed_forward = 1024;            ///< hidden units of the feed-forward network; 0: none
  double dropout = 0;                     ///< on the output of each branch, before it is added to x
  NormPlace norm_place = NormPlace::pre;  ///< before each branch, or behind each sum
  LayerNorm::Options norm = {};           ///< options of all norms of the block
  FeedForward::Options forward = {};      ///< options of the feed-forward network
  int64_t short_convolution = 0;          ///< taps of the convolution on the input of self-attention; 0: none
  bool causal = false;                    ///< part of a decoder: that convolution reads no later tokens
};

/// The caches of one decoder block.
struct BlockCache {
  std::unique_ptr<AttentionCache> self = {};         ///< cache of self-attention
  std::unique_ptr<AttentionCache> cross = {};        ///< cache of cross-attention; null without one
  std::unique_ptr<AttentionCache> convolution = {};  ///< cache of the short convolution; null without one
};

/// Self-attention, optional cross-attention, optional feed-forward: each with a residual connection and a
/// norm.
class Block final : public Module {
 public:
  /// `cross` is null in encoders and language models.
  Block(const BlockOptions& options, std::unique_ptr<Attention> self, std::unique_ptr<Attention> cross,
        Rng& rng);

  /// x [B, T, width] -> [B, T, width], or packed [1, N, width] where the mask says so. `encoded` [B, S,
  /// width] and its mask are for cross-attention. With a cache, x continues the cached sequence, and
  /// `encoded` may be empty once it is cached.
  Tensor operator()(const Tensor& x, const Mask& mask, const Tensor& encoded, const Mask& encoded_mask,
                    BlockCache* cache, const ForwardContext& context) const;
  /// operator() from and to a residual stream, which adds the last branch when it is read next.
  void add_to(ResidualStream& stream, const Mask& mask, const Tensor& encoded, const Mask& encoded_mask,
              BlockCache* cache, const ForwardContext& context) const;
  /// Empty caches. Fails when an attention of this block cannot decode step by step.
  BlockCache new_cache() const;
  void fields(Fields& f) override;

  std::unique_ptr<Attention> attention;       ///< self-attention
  std::unique_ptr<Attention> cross;           ///< null without cross-attention
  std::unique_ptr<FeedForward> feed_forward;  ///< the last branch; null without one
  LayerNorm attention_norm;                   ///< norm of the self-attention branch
  std::unique_ptr<LayerNorm> forward_norm;    ///< norm of the feed-forward branch; null without one
  std::unique_ptr<LayerNorm> cross_norm;      ///< norm of the cross-attention branch; null without one
  std::unique_ptr<ShortConvolution> short_convolution;  ///< before self-attention; null without one

 private:
  BlockOptions options_;
};

}  // namespace heed
