// Softmax and cross entropy in one, with label smoothing.
#pragma once

#include "heed/core/isa.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// logits [N, V], targets i32 [N]; rows whose target is `ignore` do not count. With smoothing s a row costs
/// lse - (1 - s) logit[target] - s mean(logits) (Szegedy et al. 2016). Writes lse [N], the mean over counted
/// rows into loss [1], and the number of counted rows into counted [1] (dtype of the logits), all on the
/// device.
struct CrossEntropy {
  template <Isa>
  static void cpu(const Tensor& logits, const Tensor& targets, double smoothing, int32_t ignore,
                  const Tensor& lse, const Tensor& loss, const Tensor& counted);
  static void cuda(const Tensor& logits, const Tensor& targets, double smoothing, int32_t ignore,
                   const Tensor& lse, const Tensor& loss, const Tensor& counted);
};

/// Tensors of CrossEntropyBack.
struct CrossEntropyBackTensors {
  Tensor logits, targets, lse, counted;  ///< as CrossEntropy read and wrote them
  Tensor dloss;                          ///< [1]
  Tensor dlogits;                        ///< written: [N, V]; may be `logits` itself
};

/// dlogits = dloss / counted (softmax - (1 - s) onehot - s / V); zero in ignored rows.
struct CrossEntropyBack {
  template <Isa>
  static void cpu(const CrossEntropyBackTensors& t, double smoothing, int32_t ignore);
  static void cuda(const CrossEntropyBackTensors& t, double smoothing, int32_t ignore);
};

}  // namespace heed::kernel
