// Layer normalisation.
#include "autograd/ops.h"
#include "autograd/ops/agree.h"
#include "core/launch.h"

namespace heed {

Tensor layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, double epsilon,
                  kernel::NormScale scale) {
  const int64_t width = x.extent(-1);
  if (!(gain.shape() == Shape{width}) || (bias && !(bias.shape() == Shape{width}))) {
    fail("layer_norm: gain ", gain.shape(), " over an input ", x.shape(), "; it must be [", width,
         "], and so must the bias.");
  }
  agree("layer_norm", x, gain);
  if (bias) agree("layer_norm", x, bias);
  const Tensor dense_gain = contiguous(gain.detach());
  const Tensor rows =
      view::reshape(contiguous(x.detach()), Shape{width > 0 ? x.size() / width : 0, width});  // [N, d]
  const Tensor y = like(rows);
  const Tensor mean = like(rows, Shape{rows.extent(0)});
  const Tensor rstd = like(mean);
  launch<kernel::LayerNorm>(x.device(), rows, dense_gain, bias ? contiguous(bias.detach()) : Tensor(),
                            epsilon, scale, y, mean, rstd);
  const auto vjp = [rows, gain = dense_gain, mean, rstd, epsilon, scale, from = x.shape(),
                    biased = bool(bias)](const Tensor& dy) -> Gradients {
    const Tensor dx = like(rows);
    const Tensor dgain = like(gain);
    const Tensor dbias = biased ? like(gain) : Tensor();
    launch<kernel::LayerNormBack>(dy.device(), rows, gain, mean, rstd, epsilon, scale,
                                  view::reshape(contiguous(dy), rows.shape()), dx, dgain, dbias);
    return {view::reshape(dx, from), dgain, dbias};
  };
  return record("layer_norm", view::reshape(y, x.shape()), {&x, &gain, &bias}, vjp);
}

}  // namespace heed
