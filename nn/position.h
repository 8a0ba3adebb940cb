// Positions: encodings added to token embeddings, and the kinds that act inside attention.
#pragma once

#include "heed/nn/module.h"
#include "heed/nn/packing.h"

namespace heed {

/// Position encodings. Added to embeddings: sinusoid: fixed sines and cosines, interleaved (Vaswani et al.
/// 2017, section 3.5); sinusoid_halves: the sines in the first half of the features and the cosines in the
/// second, as in Tensor2Tensor and Marian; learned: a trained table. Inside self-attention: rope,
/// rope_interleaved: queries and keys are rotated by their position, in pairs of elements d / 2 apart or
/// adjacent (Su et al. 2021); alibi: scores decrease linearly with distance (Press et al. 2021); t5: a
/// trained bias per bucket of distances (Raffel et al. 2019); shaw: trained vectors per distance, added to
/// keys and to values (Shaw et al. 2018); shaw_keys: to keys only.
enum class PositionKind {
  none,
  sinusoid,
  sinusoid_halves,
  learned,
  rope,
  rope_interleaved,
  alibi,
  t5,
  shaw,
  shaw_keys
};

/// True for kinds that add fixed sines and cosines to embeddings.
constexpr bool is_sinusoidal(PositionKind kind) {
  return kind == PositionKind::sinusoid || kind == PositionKind::sinusoid_halves;
}

/// True for kinds that act inside attention.
constexpr bool inside_attention(PositionKind kind) { return kind >= PositionKind::rope; }

/// True for kinds that change the score of a pair by its distance.
constexpr bool by_distance(PositionKind kind) { return kind >= PositionKind::alibi; }

/// True for kinds that rotate queries and keys by their position.
constexpr bool is_rotary(PositionKind kind) {
  return kind == PositionKind::rope || kind == PositionKind::rope_interleaved;
}

/// Adds the vectors of positions first, first + 1, ... to x [B, T, width]. Fails beyond max_length. Kinds
/// that act inside attention add nothing.
class Position final : public Module {
 public:
  /// `deviation`: standard deviation of the normal initial values of a learned table.
  Position(PositionKind kind, int64_t max_length, int64_t width, Rng& rng, double deviation = 0.02);
  Tensor operator()(const Tensor& x, int64_t first) const;  ///< `first` is the position of x's token 0
  /// Adds the vectors of explicit positions, i32 [B, T], each below max_length.
  Tensor at(const Tensor& x, const Tensor& positions) const;
  /// Adds the vectors of positions 0, 1, ... of each of the packed sequences x [1, N, width]. Fails beyond
  /// max_length.
  Tensor at(const Tensor& x, const Packing& packing) const;
  void fields(Fields& f) override;

 private:
  /// Fails where the table ends before position `end`.
  void check_length(int64_t end) const;

  PositionKind kind_;
  Tensor table_;  // [max_length, width]; trained only when learned
};

}  // namespace heed
