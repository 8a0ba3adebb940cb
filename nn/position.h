// Where a token stands: what is added to its embedding.
#pragma once

#include "nn/module.h"

namespace heed {

/// none: nothing; sinusoid: fixed waves (Vaswani et al. 2017, section 3.5, sine and cosine in turn); learned:
/// a trained table.
enum class PositionKind { none, sinusoid, learned };

/// Adds vectors of positions first, first + 1, ... to x [B, T, width]. Fails past max_length.
class Position final : public Module {
 public:
  Position(PositionKind kind, int64_t max_length, int64_t width, Rng& rng);
  Tensor operator()(const Tensor& x, int64_t first) const;
  void fields(Fields& f) override;

 private:
  PositionKind kind_;
  Tensor table_;  // [max_length, width]; a leaf only when learned
};

}  // namespace heed
