// Masks computed on the device from lengths.
#pragma once

#include "heed/core/isa.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// y [B, 1, Tq, Tk] = 0 where query i sees key j, else -inf. It sees keys j < lengths[b] (i32 [B], or empty)
/// and, when causal, j <= i + first_query. Contiguous, f32 or f64.
struct DenseMask {
  template <Isa>
  static void cpu(const Tensor& lengths, bool causal, int64_t first_query, const Tensor& y);
  static void cuda(const Tensor& lengths, bool causal, int64_t first_query, const Tensor& y);
};

/// y [B, 1, T, 1] = 1 where first + t is below lengths[b], else 0.
struct KeptRows {
  template <Isa>
  static void cpu(const Tensor& lengths, int64_t first, const Tensor& y);
  static void cuda(const Tensor& lengths, int64_t first, const Tensor& y);
};

/// y = x, both contiguous [B, ..., T, W], except in padding, the rows t with first + t >= lengths[b]: numbers
/// there that are NaN or beyond +-max_magnitude become 0. Both may be bf16.
struct FinitePadding {
  static constexpr double max_magnitude = 1e15;  ///< dot products of such numbers stay finite in f32
  template <Isa>
  static void cpu(const Tensor& x, const Tensor& lengths, int64_t first, const Tensor& y);
  static void cuda(const Tensor& x, const Tensor& lengths, int64_t first, const Tensor& y);
};

}  // namespace heed::kernel
