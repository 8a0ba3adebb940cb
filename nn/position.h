// Where a token stands: what is added to its embedding, or acts inside an attention.
#pragma once

#include "nn/module.h"

namespace heed {

/// none: nothing. Added to embeddings: sinusoid: fixed waves (Vaswani et al. 2017, section 3.5, sine and
/// cosine in turn); learned: a trained table. Inside self-attention: rope: queries and keys turn with their
/// position, pairs are halves of a head or neighbours (Su et al. 2021); alibi: scores fall with the distance
/// (Press et al. 2021); t5: a trained bias for each bucket of distances (Raffel et al. 2019); shaw: trained
/// vectors for each distance, one added to the key and one to the value (Shaw et al. 2018); shaw_keys: to the
/// key alone.
enum class PositionKind { none, sinusoid, learned, rope, rope_interleaved, alibi, t5, shaw, shaw_keys };

/// True for those that act inside an attention.
constexpr bool inside_attention(PositionKind kind) { return kind >= PositionKind::rope; }

/// True for those that change the score of a pair by its distance.
constexpr bool by_distance(PositionKind kind) { return kind >= PositionKind::alibi; }

/// Adds vectors of positions first, first + 1, ... to x [B, T, width]. Fails past max_length. Kinds that act
/// inside an attention add nothing.
class Position final : public Module {
 public:
  /// A learned table starts normal with that deviation.
  Position(PositionKind kind, int64_t max_length, int64_t width, Rng& rng, double deviation = 0.02);
  Tensor operator()(const Tensor& x, int64_t first) const;
  /// The same with a position of its own for each token: places i32 [B, T], each below max_length.
  Tensor at(const Tensor& x, const Tensor& places) const;
  void fields(Fields& f) override;

 private:
  PositionKind kind_;
  Tensor table_;  // [max_length, width]; a leaf only when learned
};

}  // namespace heed
