// Random directions that features are made of.
#pragma once

#include <string>

#include "core/random.h"
#include "nn/attention.h"

namespace heed {

/// How the rows of a random projection are drawn.
struct ProjectionTerms {
  bool orthogonal = true;  ///< rows in groups of d at right angles to each other; otherwise independent
  bool equal = false;      ///< all rows of length sqrt(d); otherwise of lengths as normal vectors have
};

/// [rows, d], each row uniform in direction: the marginals are normal where lengths are not equal.
/// Choromanski et al. 2020, arXiv 2009.14794, section 2.4.
Tensor random_projection(int64_t rows, int64_t d, const ProjectionTerms& terms, Rng& rng);

/// What a variant lets one choose of its projection.
struct ProjectionOptions {
  int64_t m = 0;  ///< rows; 0: twice the head width
  bool orthogonal = true;
  int64_t redraw = 1000;
  void fields(Fields& f) {
    f("m", m, {0, max_width}, "random directions; 0: twice the head width");
    f("orthogonal", orthogonal, "directions at right angles to each other");
    f("redraw", redraw, {0, most_counted}, "steps of training between draws of the directions; 0: never");
  }
};

/// A projection W [rows, d] that is no parameter: saved, fixed when evaluating, and drawn anew every `redraw`
/// steps of training (0: never).
class RandomProjection {
 public:
  RandomProjection(int64_t rows, int64_t d, const ProjectionTerms& terms, int64_t redraw, int64_t layer,
                   Rng& rng);
  /// Of one head of `config`; `equal`: rows of length sqrt(d). `variant` is who an error speaks of.
  RandomProjection(const char* variant, const AttentionConfig& config, const ProjectionOptions& options,
                   bool equal, Rng& rng);
  void fields(Fields& f) { f("W", weight_); }
  /// x W^T: [B, H, T, d] -> [B, H, T, rows].
  Tensor operator()(const Tensor& x) const;
  /// Before a pass: the step of training decides which projection it is.
  void settle(const Pass& pass);

 private:
  ProjectionTerms terms_;
  int64_t redraw_, layer_, period_ = 0;
  Tensor weight_;
};

}  // namespace heed
