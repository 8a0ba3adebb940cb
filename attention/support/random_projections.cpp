// Draws normal rows and orthogonalises them by the Gram-Schmidt process in f64.
#include "heed/attention/support/random_projections.h"

#include <cmath>
#include <vector>

#include "heed/core/kernels/simd/simd.h"

namespace heed {

Tensor random_projection(int64_t rows, int64_t d, const ProjectionParams& params, Rng& rng) {
  const auto normal = [&](int64_t count) {
    const Tensor x(Shape{count, d}, DType::f64);
    fill_normal(x, 0, 1, rng);
    return x.to_doubles();
  };
  std::vector<double> w = normal(rows);
  const std::vector<double> vectors_of_lengths = normal(rows);
  const size_t n = static_cast<size_t>(d), count = static_cast<size_t>(rows);
  std::vector<double> lengths(count);
  for (size_t r = 0; r < count; ++r) {
    // Lengths of orthogonal rows come from other normal vectors, because length and direction of a normal
    // vector are independent.
    const double* drawn = params.orthogonal ? &vectors_of_lengths[r * n] : &w[r * n];
    lengths[r] =
        params.equal ? std::sqrt(static_cast<double>(d)) : std::sqrt(kernel::lanes::dot(drawn, drawn, d));
  }
  for (size_t r = 0; r < count; ++r) {
    double* row = &w[r * n];
    for (size_t earlier = r / n * n; params.orthogonal && earlier < r; ++earlier) {  // rows of the group of d
      const double* unit = &w[earlier * n];
      const double projection = kernel::lanes::dot(row, unit, d);
      for (size_t c = 0; c < n; ++c) row[c] -= projection * unit[c];
    }
    const double factor = 1 / std::sqrt(kernel::lanes::dot(row, row, d));
    for (size_t c = 0; c < n; ++c) row[c] *= factor;
  }
  for (size_t i = 0; i < w.size(); ++i) w[i] *= lengths[i / n];
  return Tensor::of<double>(w, Shape{rows, d});
}

RandomProjection::RandomProjection(const char* variant, const AttentionConfig& config,
                                   const ProjectionOptions& options, bool equal, Rng& rng)
    : params_{.orthogonal = options.orthogonal, .equal = equal},
      redraw_(options.redraw),
      layer_(config.layer) {
  if (options.m < 0) fail("attention '", variant, "': m = ", options.m, ". It must be at least 0.");
  const int64_t d = config.width_of_head(), rows = options.m > 0 ? options.m : 2 * d;
  if (rows < 1) fail("attention: ", rows, " random rows. There must be at least 1.");
  if (redraw_ < 0) fail("attention: redraw = ", redraw_, ". It must be at least 0.");
  weight_ = cast(random_projection(rows, d, params_, rng), DType::f32);
}

Tensor RandomProjection::operator()(const Tensor& x) const {
  if (weight_.extent(1) != x.extent(3)) {
    fail("attention: W is ", weight_.shape(), " for heads of width ", x.extent(3), ". It must be [m, ",
         x.extent(3), "].");
  }
  return matmul(x, transpose(weight_, 0, 1));
}

void RandomProjection::redraw_if_due(const ForwardContext& context) {
  if (redraw_ == 0 || !context.training()) return;
  const int64_t period = context.rng->tick() / redraw_;
  if (period == period_ || period == 0) return;
  // The seed depends on the step and the layer alone, so a resumed run draws the numbers of an uninterrupted
  // one. The factor, 2^64 / the golden ratio, spreads the seeds of neighbouring periods.
  constexpr uint64_t golden = 0x9E3779B97F4A7C15ULL;
  Rng rng(context.rng->seed() + golden * static_cast<uint64_t>(period * 4096 + layer_ + 1));
  const NoGrad no_grad;
  const Tensor drawn = random_projection(weight_.extent(0), weight_.extent(1), params_, rng);
  const Tensor moved = Tensor::of<double>(drawn.to_doubles(), drawn.shape(), weight_.device());
  weight_ = cast(moved, weight_.dtype());
  period_ = period;
}

}  // namespace heed
