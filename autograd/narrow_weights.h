// Weights in fewer bytes for inference: bf16, or blocks of whole numbers of 8 bits.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>

#include "heed/core/scope.h"
#include "heed/core/tensor.h"

namespace heed {

/// How NarrowWeights keeps a matrix [out, in]: bf16, 2 bytes a number; or q8_0, blocks of 32 numbers of a row
/// of 8 bits each with one scale, 1.125 bytes a number, as in GGUF files (whose scales are f16, here f32).
enum class WeightFormat : uint8_t { bf16, q8_0 };

/// A matrix [out, in] in a WeightFormat: bf16 `numbers`, and no scales; or the numbers and scales of
/// kernel::Q8WeightGemm.
struct NarrowWeight {
  Tensor numbers;  ///< [out, in]
  Tensor scales;   ///< [out, in / 32], or empty
};

/// Copies of a trained model's weights in fewer bytes, which linear() reads for few rows: decoding a token is
/// bound by the bytes of the weights. The weights themselves are rounded in place, so that products of many
/// rows use the same numbers. Later changes of the weights are not copied.
class NarrowWeights {
 public:
  NarrowWeights() = default;
  /// Copies every f32 matrix among `weights`, and rounds it in place; ignores others, and with q8_0 those
  /// whose rows are no whole blocks. Rounding again changes nothing, nor does rounding what a q8_0 file had.
  NarrowWeights(std::span<const Tensor> weights, WeightFormat format);

  /// The copy of a weight [out, in], or null.
  const NarrowWeight* find(const Tensor& weight) const;

  /// While one lives, linear() in this thread reads the copies when nothing is recorded and the input has few
  /// rows.
  class Used {
   public:
    explicit Used(const NarrowWeights& weights);  ///< the copies must outlive it

   private:
    ScopedValue<const NarrowWeights*> weights_;
  };

 private:
  std::unordered_map<const void*, NarrowWeight> copies_;  // by the address of the weight
};

/// The copy that linear() of this thread should read for `weight`; null when there is none.
const NarrowWeight* narrow_copy(const Tensor& weight);

}  // namespace heed
