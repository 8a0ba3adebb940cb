// Random projections for random-feature attentions.
#pragma once

#include <string>

#include "heed/core/random.h"
#include "heed/nn/attention.h"

namespace heed {

/// Distribution of the rows of a random projection.
struct ProjectionParams {
  bool orthogonal = true;  ///< rows are orthogonal within groups of d; otherwise independent
  bool equal = false;      ///< all rows have length sqrt(d); otherwise the lengths of normal vectors
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
    f("orthogonal", orthogonal, "directions at right angles to each other");
    f("redraw", redraw, {0, max_integer}, "steps of training between draws of the directions; 0: never");
  }
};

/// A random projection W [rows, d]: a buffer that is saved, fixed when evaluating, and redrawn every `redraw`
/// training steps (0: never).
class RandomProjection {
 public:
  /// Draws W; `layer` separates the streams of layers, `redraw` is in training steps (0: never).
  RandomProjection(int64_t rows, int64_t d, const ProjectionParams& params, int64_t redraw, int64_t layer,
                   Rng& rng);
  /// For the head width of `config`; `equal`: rows of length sqrt(d); `variant`: the name in error messages.
  RandomProjection(const char* variant, const AttentionConfig& config, const ProjectionOptions& options,
                   bool equal, Rng& rng);
  void fields(Fields& f) { f("W", weight_); }  ///< names W, a buffer that checkpoints keep
  /// x W^T: [B, H, T, d] -> [B, H, T, rows].
  Tensor operator()(const Tensor& x) const;
  /// Redraws W if the current training step requires it; call it before each forward pass.
  void settle(const ForwardContext& context);

 private:
  ProjectionParams params_;
  int64_t redraw_, layer_, period_ = 0;
  Tensor weight_;
};

}  // namespace heed
