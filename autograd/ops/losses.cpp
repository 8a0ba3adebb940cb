// Losses composed of other ops.
#include "heed/autograd/losses.h"

#include "heed/autograd/comparisons.h"

namespace heed {
namespace {

Tensor reduced(const Tensor& losses, Reduction reduction) {
  if (reduction == Reduction::none) return losses;
  return reduction == Reduction::mean ? mean(losses) : sum(losses);
}

}  // namespace

Tensor mse_loss(const Tensor& x, const Tensor& target, Reduction reduction) {
  return reduced(square(x - target), reduction);
}

Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& target, Reduction reduction,
                                        double positive_weight) {
  // softplus(-x) is -log sigmoid(x), and x + softplus(-x) is -log(1 - sigmoid(x)).
  const Tensor negative_log = softplus(-x);
  const Tensor losses = positive_weight == 1
                            ? negative_log + (1 - target) * x
                            : (1 - target) * x + negative_log * (1 + (positive_weight - 1) * target);
  return reduced(losses, reduction);
}

Tensor kl_divergence(const Tensor& log_probabilities, const Tensor& target, Reduction reduction) {
  const Tensor is_positive = greater(target, 0.0);
  const Tensor log_target = log(where(is_positive, target, 1.0));
  const Tensor losses = where(is_positive, target * (log_target - log_probabilities), 0.0);
  if (reduction != Reduction::mean) return reduced(losses, reduction);
  const int64_t rows = losses.rank() == 0 ? 1 : losses.size() / losses.extent(-1);
  return sum(losses) / static_cast<double>(rows);
}

Tensor cross_entropy_of_each(const Tensor& logits, const Tensor& targets, double smoothing, int32_t ignore) {
  if (logits.rank() != targets.rank() + 1 || targets.dtype() != DType::i32)
    fail("cross_entropy_of_each: targets ", targets.dtype(), " ", targets.shape(), " for logits ",
         logits.shape(), "; they must be i32 with one target a row.");
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
