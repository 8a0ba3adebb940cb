// Weights kept in half the bytes, for inference.
#pragma once

#include <span>
#include <unordered_map>

#include "core/tensor.h"

namespace heed {

/// Copies of weights in bf16. Making one token at a time reads every weight for a single row, and takes the
/// time of that: linear() then reads the copies instead. The weights themselves are rounded in place, so that
/// products of more rows, which go on reading them, see the same numbers. Made for a trained model; weights
/// that change later are not followed.
class NarrowWeights {
 public:
  NarrowWeights() = default;
  /// Of every matrix of f32 among `weights`; others stay as they are.
  explicit NarrowWeights(std::span<const Tensor> weights);

  /// The copy of a whole weight [out, in] in bf16, or null.
  const Tensor* find(const Tensor& weight) const;

  /// While one lives, linear() of this thread reads the copies where nothing is recorded and few rows meet
  /// them.
  class Used {
   public:
    explicit Used(const NarrowWeights& weights);
    ~Used();
    Used(const Used&) = delete;
    Used& operator=(const Used&) = delete;

   private:
    const NarrowWeights* before_;
  };

 private:
  std::unordered_map<const void*, Tensor> copies_;  // by where the weight begins
};

/// What linear() of this thread finds for a weight; null when there is none.
const Tensor* narrow_copy(const Tensor& weight);

}  // namespace heed
