// Layer normalisation and RMS norm.
#include "heed/autograd/ops.h"
#include "heed/autograd/ops/shape_checks.h"
#include "heed/core/launch.h"

namespace heed {

namespace {

/// layer_norm(), recorded and refused under the name `op`.
Tensor normalised_rows(const char* op, const Tensor& x, const Tensor& gain, const Tensor& bias,
                       double epsilon, kernel::NormScale scale) {
  const int64_t width = x.extent(axis_of(op, x, -1));
  if (!(gain.shape() == Shape{width}) || (bias && !(bias.shape() == Shape{width}))) {
    fail(op, ": gain ", gain.shape(), " over an input ", x.shape(), "; it must be [", width,
         "], and so must a bias.");
  }
  agree(op, x, gain);
  if (bias) agree(op, x, bias);
  const Tensor dense_gain = contiguous(gain.detach());
  const Tensor rows =
      view::reshape(contiguous(x.detach()), Shape{width > 0 ? x.size() / width : 0, width});  // [N, d]
  const Tensor y = empty_like(rows);
  const Tensor mean = empty_like(rows, Shape{rows.extent(0)});
  const Tensor rstd = empty_like(mean);
  const kernel::LayerNormTensors t{.x = rows,
                                   .gain = dense_gain,
                                   .bias = bias ? contiguous(bias.detach()) : Tensor(),
                                   .y = y,
                                   .mean = mean,
                                   .rstd = rstd};
  launch<kernel::LayerNorm>(x.device(), t, epsilon, scale);
  const auto vjp = [rows, gain = dense_gain, mean, rstd, epsilon, scale, from = x.shape(),
                    biased = bool(bias)](const Tensor& dy) -> Gradients {
    const Tensor dx = empty_like(rows);
    const Tensor dgain = empty_like(gain);
    const Tensor dbias = biased ? empty_like(gain) : Tensor();
    launch<kernel::LayerNormBack>(
        dy.device(),
        kernel::LayerNormBackTensors{.x = rows,
                                     .gain = gain,
                                     .mean = mean,
                                     .rstd = rstd,
                                     .dy = view::reshape(contiguous(dy), rows.shape()),
                                     .dx = dx,
                                     .dgain = dgain,
                                     .dbias = dbias},
        epsilon, scale);
    return {view::reshape(dx, from), dgain, dbias};
  };
  return record(op, view::reshape(y, x.shape()), {&x, &gain, &bias}, vjp);
}

}  // namespace

Tensor layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, double epsilon,
                  kernel::NormScale scale) {
  return normalised_rows("layer_norm", x, gain, bias, epsilon, scale);
}

Tensor rms_norm(const Tensor& x, const Tensor& gain, double epsilon) {
  return normalised_rows("rms_norm", x, gain, {}, epsilon, kernel::NormScale::rms);
}

}  // namespace heed
