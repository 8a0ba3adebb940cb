// Losses composed of other ops.
#include "heed/autograd/losses.h"

#include "heed/autograd/comparisons.h"
#include "heed/autograd/ops/shape_checks.h"

namespace heed {
namespace {

Tensor reduced(const Tensor& losses, Reduction reduction) {
  if (reduction == Reduction::none) return losses;
  return reduction == Reduction::mean ? mean(losses) : sum(losses);
}

/// Fails unless x and its target have one shape and compute in one dtype: [32, 1] and [32] would broadcast to
/// [32, 32].
void check_pair(const char* loss, const Tensor& x, const Tensor& target) {
  agree(loss, x, target);
  check_float(loss, x);
  if (!(x.shape() == target.shape()))
    fail(loss, ": x is ", x.shape(), " and its target ", target.shape(),
         ". Both must have one shape: reshape() or expand() the target.");
}

/// Fails unless each target is one of the classes or `ignore`. On a GPU, gather() finds those above.
void check_targets(const Tensor& targets, int64_t classes, int32_t ignore) {
  if (targets.device() != Device::cpu) return;
  const Tensor dense = contiguous(targets.detach());
  const int32_t* all = dense.data<int32_t>();
  for (int64_t row = 0; row < dense.size(); ++row) {
    if (all[row] != ignore && (all[row] < 0 || all[row] >= classes))
      fail("cross_entropy_of_each: target ", all[row], " of row ", row, " is none of the ", classes,
           " classes. Targets are 0 to ", classes - 1, ", or ", ignore, " for rows that do not count.");
  }
}

}  // namespace

Tensor mse_loss(const Tensor& x, const Tensor& target, Reduction reduction) {
  check_pair("mse_loss", x, target);
  return reduced(square(x - target), reduction);
}

Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& target, Reduction reduction,
                                        double positive_weight) {
  check_pair("binary_cross_entropy_with_logits", x, target);
  // softplus(-x) is -log sigmoid(x), and x + softplus(-x) is -log(1 - sigmoid(x)).
  const Tensor negative_log = softplus(-x);
  const Tensor losses = positive_weight == 1
                            ? negative_log + (1 - target) * x
                            : (1 - target) * x + negative_log * (1 + (positive_weight - 1) * target);
  return reduced(losses, reduction);
}

Tensor kl_divergence(const Tensor& log_probabilities, const Tensor& target, Reduction reduction) {
  check_pair("kl_divergence", log_probabilities, target);
  const Tensor is_positive = greater(target, 0.0);
  const Tensor log_target = log(where(is_positive, target, 1.0));
  const Tensor losses = where(is_positive, target * (log_target - log_probabilities), 0.0);
  if (reduction != Reduction::mean) return reduced(losses, reduction);
  const int64_t rows = losses.rank() == 0 ? 1 : losses.size() / losses.extent(-1);
  return sum(losses) / static_cast<double>(rows);
}

Tensor cross_entropy_of_each(const Tensor& logits, const Tensor& targets, double smoothing, int32_t ignore) {
  check_float("cross_entropy_of_each", logits);
  const int64_t classes = logits.extent(axis_of("cross_entropy_of_each", logits, -1));
  Shape rows = logits.shape();
  rows.erase(-1);
  if (!(targets.shape() == rows) || targets.dtype() != DType::i32)
    fail("cross_entropy_of_each: targets ", targets.dtype(), " ", targets.shape(), " for logits ",
         logits.shape(), "; they must be i32 with one target a row.", index_advice("targets", targets));
  check_targets(targets, classes, ignore);
  if (smoothing < 0 || smoothing >= 1)
    fail("cross_entropy_of_each: label smoothing ", smoothing, ". It must be at least 0 and below 1.");
  const Tensor log_probabilities = log_softmax(logits), is_kept = not_equal(targets, ignore);
  // An index of -1 gathers 0.
  const Tensor index = cast(where(is_kept, cast(targets, DType::f64), -1.0), DType::i32);
  Shape column = targets.shape();
  column.push_back(1);
  const Tensor target_logs = reshape(gather(log_probabilities, -1, reshape(index, column)), targets.shape());
  Tensor losses = target_logs * (smoothing - 1);
  if (smoothing > 0) losses -= reshape(mean(log_probabilities, -1), targets.shape()) * smoothing;
  return where(is_kept, losses, 0.0);
}

}  // namespace heed
