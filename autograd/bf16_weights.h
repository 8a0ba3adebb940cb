// Weights in bf16 for inference: half the bytes to read per token.
#pragma once

#include <span>
#include <unordered_map>

#include "heed/core/tensor.h"

namespace heed {

/// Copies of weights in bf16. Decoding one token reads every weight for a single row, so its time is the time
/// of reading them; linear() then reads these copies. The weights themselves are rounded in place, so that
/// products of more rows see the same numbers. For a trained model: later changes of the weights are not
/// copied.
class Bf16Weights {
 public:
  Bf16Weights() = default;
  /// Copies every f32 matrix among `weights`; ignores others.
  explicit Bf16Weights(std::span<const Tensor> weights);

  /// The bf16 copy of a weight [out, in], or null.
  const Tensor* find(const Tensor& weight) const;

  /// While one lives, linear() in this thread reads the copies when nothing is recorded and the input has few
  /// rows.
  class Used {
   public:
    /// The copies must outlive it; they are read from here to its end.
    explicit Used(const Bf16Weights& weights);
    ~Used();
    Used(const Used&) = delete;
    Used& operator=(const Used&) = delete;

   private:
    const Bf16Weights* before_;
  };

 private:
  std::unordered_map<const void*, Tensor> copies_;  // by where the weight begins
};

/// The copy that linear() of this thread should read for `weight`; null when there is none.
const Tensor* bf16_copy(const Tensor& weight);

}  // namespace heed
