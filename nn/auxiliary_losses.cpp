// Auxiliary losses that attentions add to the loss of the task.
#include "heed/nn/auxiliary_losses.h"

#include <algorithm>

#include "heed/core/kernels/norm/cross_entropy.h"
#include "heed/core/launch.h"

namespace heed {
namespace {

/// The likelihood of concatenated sequences, without gradients: logits [N, V], targets [N]; `rows` holds the
/// length of each.
Likelihood likelihood_of(const Tensor& logits, const Tensor& targets, std::span<const int64_t> rows,
                         int32_t ignore) {
  const NoGrad no_grad;
  const auto batch = static_cast<int64_t>(rows.size());
  const Tensor all = contiguous(logits.detach()), labels = contiguous(targets.detach());
  const Tensor mean = Tensor::zeros(Shape{batch}, all.dtype(), all.device()),
               count = Tensor::zeros(Shape{batch}, all.dtype(), all.device());
  const Tensor lse = empty_like(all, Shape{all.extent(0)});
  int64_t begin = 0;
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t end = begin + rows[static_cast<size_t>(b)];
    if (end == begin) continue;  // a sequence without targets
    launch<kernel::CrossEntropy>(
        all.device(), view::slice(all, 0, begin, end), view::slice(labels, 0, begin, end), 0.0, ignore,
        view::slice(lse, 0, begin, end), view::slice(mean, 0, b, b + 1), view::slice(count, 0, b, b + 1));
    begin = end;
  }
  return {-(mean * count), sum(count), minimum(count, 1)};
}

}  // namespace

void AuxiliaryLosses::resolve(const Likelihood& likelihood) {
  for (const auto& [name, make] : waiting) list.emplace_back(name, make(likelihood));
  waiting.clear();
}

Tensor AuxiliaryLosses::sum() const {
  if (!waiting.empty()) {
    fail("loss: the term '", waiting.front().first,
         "' of an attention waits for the likelihood of each sequence, which this task does not give. Call "
         "resolve_auxiliary_losses() beside its cross entropy.");
  }
  Tensor total;
  for (const auto& [name, term] : list) total = total ? total + term : term;
  return total;
}

void resolve_auxiliary_losses(AuxiliaryLosses* losses, const Tensor& logits, const Tensor& targets,
                              std::span<const int64_t> rows, int32_t ignore) {
  if (losses == nullptr || losses->waiting.empty()) return;
  losses->resolve(likelihood_of(logits, targets, rows, ignore));
}

void resolve_auxiliary_losses(AuxiliaryLosses* losses, const Tensor& logits, const Tensor& targets,
                              int32_t ignore) {
  if (losses == nullptr || losses->waiting.empty()) return;
  const int64_t batch = targets.extent(0);
  const std::vector<int64_t> rows(static_cast<size_t>(batch), targets.size() / std::max<int64_t>(batch, 1));
  resolve_auxiliary_losses(losses, reshape(logits.detach(), Shape{-1, logits.extent(-1)}),
                           reshape(targets.detach(), Shape{-1}), rows, ignore);
}

void resolve_auxiliary_losses_of_parts(AuxiliaryLosses* losses, const Tensor& logits, const Tensor& targets,
                                       int64_t parts) {
  if (losses == nullptr || losses->waiting.empty()) return;
  const std::vector<int64_t> rows(static_cast<size_t>(targets.extent(0)), 1);
  Likelihood likelihood = likelihood_of(logits, targets, rows, -1);
  for (Tensor* each : {&likelihood.log_likelihood, &likelihood.has_targets})
    *each = concat(std::vector<Tensor>(static_cast<size_t>(parts), *each), 0);
  losses->resolve(likelihood);
}

}  // namespace heed
