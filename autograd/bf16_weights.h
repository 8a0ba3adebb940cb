// Weights in bf16 for inference: half the bytes to read per token.
#pragma once

#include <span>
#include <unordered_map>

#include "heed/core/scope.h"
#include "heed/core/tensor.h"

namespace heed {

/// Copies of a trained model's weights in bf16, which linear() reads for few rows: decoding a token is bound
/// by the bytes of the weights. The weights themselves are rounded in place, so that products of many rows
/// use the same numbers. Later changes of the weights are not copied.
class Bf16Weights {
 public:
  Bf16Weights() = default;
  /// Copies every f32 matrix among `weights`, and rounds it in place; ignores others.
  explicit Bf16Weights(std::span<const Tensor> weights);

  /// The bf16 copy of a weight [out, in], or null.
  const Tensor* find(const Tensor& weight) const;

  /// While one lives, linear() in this thread reads the copies when nothing is recorded and the input has few
  /// rows.
  class Used {
   public:
    explicit Used(const Bf16Weights& weights);  ///< the copies must outlive it

   private:
    ScopedValue<const Bf16Weights*> weights_;
  };

 private:
  std::unordered_map<const void*, Tensor> copies_;  // by the address of the weight
};

/// The copy that linear() of this thread should read for `weight`; null when there is none.
const Tensor* bf16_copy(const Tensor& weight);

}  // namespace heed
