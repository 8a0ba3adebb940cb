// Layer normalisation and RMS norm.
#include "heed/autograd/ops.h"
#include "heed/autograd/ops/dropout_mask.h"
#include "heed/autograd/ops/shape_checks.h"
#include "heed/core/launch.h"

namespace heed {

namespace {

/// The tensors of LayerNorm for rows of x [..., d]. Fails where gain and bias do not fit.
kernel::LayerNormTensors norm_tensors(const char* op, const Tensor& x, const Tensor& gain,
                                      const Tensor& bias) {
  const int64_t width = x.extent(axis_of(op, x, -1));
  if (!(gain.shape() == Shape{width}) || (bias && !(bias.shape() == Shape{width}))) {
    fail(op, ": gain ", gain.shape(), " over an input ", x.shape(), "; it must be [", width,
         "], and so must a bias.");
  }
  agree_as_activation(op, x, gain);
  if (bias) agree_as_activation(op, x, bias);
  const Tensor rows =
      view::reshape(contiguous(x.detach()), Shape{width > 0 ? x.size() / width : 0, width});  // [N, d]
  const Tensor mean = empty_like(gain, Shape{rows.extent(0)});
  return {.x = rows,
          .gain = contiguous(gain.detach()),
          .bias = bias ? contiguous(bias.detach()) : Tensor(),
          .y = empty_like(rows),
          .mean = mean,
          .rstd = empty_like(mean)};
}

/// Records t.y as the norm of x. `mask` and `dbranch` are those of record_sum() where x is its sum; the vjp
/// then writes dropout(dx) to *dbranch.
Tensor record_norm(const char* op, const Tensor& x, const kernel::LayerNormTensors& t, const Tensor& gain,
                   const Tensor& bias, double epsilon, kernel::NormScale scale,
                   const kernel::DropoutMask& mask = {}, const std::shared_ptr<Tensor>& dbranch = nullptr) {
  const auto vjp = [rows = t.x, gain = t.gain, mean = t.mean, rstd = t.rstd, epsilon, scale, from = x.shape(),
                    biased = bool(bias), mask, dbranch](const Tensor& dy) -> Gradients {
    const Tensor dx = empty_like(rows), so_far = gradient_so_far(0);
    const Tensor dgain = gradient_target(1, gain);
    const Tensor dbias = biased ? gradient_target(2, gain) : Tensor();
    const Tensor dropped_dx = dbranch ? empty_like(rows) : Tensor();
    launch<kernel::LayerNormBack>(
        dy.device(),
        kernel::LayerNormBackTensors{.x = rows,
                                     .gain = gain,
                                     .mean = mean,
                                     .rstd = rstd,
                                     .dy = view::reshape(contiguous(dy), rows.shape()),
                                     .dx = dx,
                                     .dgain = dgain,
                                     .dbias = dbias,
                                     .so_far = so_far ? view::reshape(so_far, rows.shape()) : so_far,
                                     .dbranch = dropped_dx,
                                     .mask = mask},
        epsilon, scale);
    if (dbranch) *dbranch = view::reshape(dropped_dx, from);
    return {view::reshape(dx, from), dgain, dbias};
  };
  return record(op, view::reshape(t.y, x.shape()), {&x, &gain, &bias}, vjp);
}

/// layer_norm(), recorded and refused under the name `op`.
Tensor normalised_rows(const char* op, const Tensor& x, const Tensor& gain, const Tensor& bias,
                       double epsilon, kernel::NormScale scale) {
  const auto t = norm_tensors(op, x, gain, bias);
  launch<kernel::LayerNorm>(x.device(), t, epsilon, scale);
  return record_norm(op, x, t, gain, bias, epsilon, scale);
}

}  // namespace

Tensor layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, double epsilon,
                  kernel::NormScale scale) {
  return normalised_rows("layer_norm", x, gain, bias, epsilon, scale);
}

Tensor rms_norm(const Tensor& x, const Tensor& gain, double epsilon) {
  return normalised_rows("rms_norm", x, gain, {}, epsilon, kernel::NormScale::rms);
}

NormalisedSum add_dropout_norm(const Tensor& x, const Tensor& branch, double p, Rng* rng,
                               const PaddedPlaces& places, const Tensor& gain, const Tensor& bias,
                               double epsilon, kernel::NormScale scale) {
  constexpr const char* op = "add_dropout_norm";
  check_branch(op, x, branch);
  const auto t = norm_tensors(op, empty_like(x), gain, bias);  // t.x receives the sum
  const auto mask = draw_dropout(op, branch, p, rng, places);
  launch<kernel::AddDropoutNorm>(x.device(), contiguous(x.detach()), contiguous(branch.detach()), mask, t,
                                 epsilon, scale);
  // The norm is the first to read the sum, so the last to give it a gradient: dropout of it is at hand there.
  const auto dbranch = mask.p > 0 && branch.node() ? std::make_shared<Tensor>() : nullptr;
  const Tensor sum = record_sum(view::reshape(t.x, x.shape()), x, branch, mask, dbranch);
  return {sum, record_norm("layer_norm", sum, t, gain, bias, epsilon, scale, mask, dbranch)};
}

}  // namespace heed
