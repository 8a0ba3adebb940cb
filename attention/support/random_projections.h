// Random projections for random-feature attentions.
#pragma once

#include "heed/core/random.h"
#include "heed/nn/attention.h"

namespace heed {

/// Distribution of the rows of a random projection.
struct ProjectionParams {
  bool orthogonal = true;  ///< rows are orthogonal within groups of d; otherwise independent
  bool equal = false;  ///< all rows have length sqrt(d); otherwise they have the lengths of normal vectors
};

/// Draws a matrix f64 [rows, d] whose rows have uniform directions; with unequal lengths each row is a normal
/// vector. Choromanski et al. 2020, arXiv 2009.14794, section 2.4.
Tensor random_projection(int64_t rows, int64_t d, const ProjectionParams& params, Rng& rng);

/// Options of a variant with a random projection.
struct ProjectionOptions {
  int64_t m = 0;           ///< rows; 0: twice the head width
  bool orthogonal = true;  ///< rows of a block of d are orthogonal, which lowers the variance of the estimate
  int64_t redraw = 1000;   ///< training steps between draws; 0: never
  /// Names the three options with their ranges.
  void fields(Fields& f) {
    f("m", m, {0, max_width}, "random directions; 0: twice the head width");
    f("orthogonal", orthogonal, "orthogonal directions");
    f("redraw", redraw, {0, max_integer}, "training steps between draws of the directions; 0: never");
  }
};

/// A random projection W [rows, d]: a buffer that is saved, fixed when evaluating, and redrawn every `redraw`
/// training steps (0: never).
class RandomProjection {
 public:
  /// Draws W for the head width of `config`. `variant`: the name in error messages; `equal`: rows have length
  /// sqrt(d).
  RandomProjection(const char* variant, const AttentionConfig& config, const ProjectionOptions& options,
                   bool equal, Rng& rng);
  void fields(Fields& f) { f("W", weight_); }  ///< names W, a buffer that checkpoints keep
  /// x W^T: [B, H, T, d] -> [B, H, T, rows].
  Tensor operator()(const Tensor& x) const;
  /// Redraws W if the current training step requires it; to be called before each forward pass.
  void redraw_if_due(const ForwardContext& context);

 private:
  ProjectionParams params_;
  int64_t redraw_, layer_;
  int64_t period_ = 0;  // period of `redraw_` steps in which W was drawn
  Tensor weight_;       // W
};

}  // namespace heed
