// The online softmax of a warp's rows, whose scores are in the registers of the tensor cores' accumulators.
// These instructions, not the matrix products, limit the speed of the forward pass.
#pragma once

#include "heed/core/cuda/device/exp2.h"
#include "heed/core/kernels/attention/attention_tensor_core_device.h"

namespace heed::kernel {

/// The online softmax of the 16 M rows of a warp; four lanes share a row, each with its part of row_sum.
/// row_max is the largest product q . k, before scaling: differences from it are then exactly zero at the
/// maximum and never above, however large the scale is.
template <int M>
struct WarpOnlineSoftmax {
  float row_max[M][2], row_sum[M][2];

  /// Begins each row with the score `sink`, in the unit of the products; -infinity: none.
  __device__ void start(const WarpThread& thread, float sink) {
#pragma unroll
    for (int m = 0; m < M; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        row_max[m][half] = sink;
        row_sum[m][half] = thread.lane % 4 == 0 && sink != minus_infinity<float> ? 1.0F : 0.0F;
      }
    }
  }
  /// Replaces products (-infinity for masked pairs) by weights 2^(unit (product - row_max)), with unit > 0,
  /// times the dropout factor keep_of(m, half)(n, e); multiplies older `sums` by their correction.
  template <int N, class KeepOf>
  __device__ void scores_to_weights(WarpAccumulator<M, key_tile / 8>& scores, float unit,
                                    WarpAccumulator<M, N>& sums, KeepOf keep_of) {
#pragma unroll
    for (int m = 0; m < M; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float new_max = minus_infinity<float>;
#pragma unroll
        for (int n = 0; n < key_tile / 8; ++n)
          new_max = fmaxf(new_max, fmaxf(scores.x[m][n][2 * half], scores.x[m][n][2 * half + 1]));
        for (int bits = 2; bits > 0; bits /= 2)
          new_max = fmaxf(new_max, __shfl_xor_sync(0xffffffffU, new_max, bits));
        const float old_max = row_max[m][half];
        row_max[m][half] = fmaxf(old_max, new_max);
        const float correction = cuda::fast_exp2((old_max - base(m, half)) * unit);
#pragma unroll
        for (int n = 0; n < N; ++n) {
          sums.x[m][n][2 * half] *= correction;
          sums.x[m][n][2 * half + 1] *= correction;
        }
        const auto keep = keep_of(m, half);
        const float row_base = base(m, half);
        float sum = 0.0F;
#pragma unroll
        for (int n = 0; n < key_tile / 8; ++n) {
#pragma unroll
          for (int e = 2 * half; e < 2 * half + 2; ++e) {
            float& weight = scores.x[m][n][e];
            weight = cuda::fast_exp2((weight - row_base) * unit);
            sum += weight;
            weight *= keep(n, e);
          }
        }
        row_sum[m][half] = row_sum[m][half] * correction + sum;
      }
    }
  }
  /// Returns 1 / row_sum, the factor that normalises a row, and its log-sum-exp. All lanes of the warp call
  /// it.
  __device__ float finish(int m, int half, float unit, RowLse<float>& lse) const {
    float total = row_sum[m][half];
    for (int bits = 2; bits > 0; bits /= 2) total += __shfl_xor_sync(0xffffffffU, total, bits);
    lse = total == 0.0F ? RowLse<float>::of_empty_row()
                        : RowLse<float>::of(row_max[m][half] * unit, log2(total));
    return total == 0.0F ? 0.0F : 1.0F / total;
  }

 private:
  /// The number that is subtracted from the products of a row: row_max, or zero where no key is visible yet,
  /// so that weights are 2^-inf = 0, not NaN.
  __device__ float base(int m, int half) const {
    return row_max[m][half] == minus_infinity<float> ? 0.0F : row_max[m][half];
  }
};

}  // namespace heed::kernel
