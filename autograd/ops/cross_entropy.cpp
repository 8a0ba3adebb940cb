// Cross entropy of logits.
#include "heed/core/kernels/norm/cross_entropy.h"
#include "heed/autograd/ops.h"
#include "heed/autograd/ops/shape_checks.h"
#include "heed/core/launch.h"

namespace heed {

Tensor cross_entropy(const Tensor& logits, const Tensor& targets, double smoothing, int32_t ignore) {
  check_float("cross_entropy", logits);
  const int64_t classes = logits.extent(axis_of("cross_entropy", logits, -1));
  if (targets.dtype() != DType::i32 || targets.size() * classes != logits.size()) {
    fail("cross_entropy: targets ", targets.dtype(), " ", targets.shape(), " for logits ", logits.shape(),
         "; they must be i32 with one target a row.", index_advice("targets", targets));
  }
  if (smoothing < 0 || smoothing >= 1) {
    fail("cross_entropy: label smoothing ", smoothing, ". It must be at least 0 and below 1.");
  }
  const Tensor rows = view::reshape(contiguous(logits.detach()), Shape{-1, classes});        // [N, V]
  const Tensor wanted = view::reshape(contiguous(targets.detach()), Shape{rows.extent(0)});  // [N]
  const Tensor lse = empty_like(rows, wanted.shape());
  const Tensor loss = empty_like(rows, Shape{});
  const Tensor counted = empty_like(rows, Shape{1});
  launch<kernel::CrossEntropy>(rows.device(), rows, wanted, smoothing, ignore, lse,
                               view::reshape(loss, Shape{1}), counted);
  const auto vjp = [rows, wanted, smoothing, ignore, lse, counted,
                    from = logits.shape()](const Tensor& dy) -> Gradients {
    const Tensor drows = empty_like(rows);
    const kernel::CrossEntropyBackTensors t{.logits = rows,
                                            .targets = wanted,
                                            .lse = lse,
                                            .counted = counted,
                                            .dloss = view::reshape(dy, Shape{1}),
                                            .dlogits = drows};
    launch<kernel::CrossEntropyBack>(rows.device(), t, smoothing, ignore);
    return {view::reshape(drows, from)};
  };
  return record("cross_entropy", loss, {&logits}, vjp);
}

}  // namespace heed
