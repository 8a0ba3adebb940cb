// The online softmax of a warp's rows, on scores in registers as the tensor cores leave them. These
// instructions, not the products, limit the speed of the forward pass.
#pragma once

#include "heed/core/cuda/device/exp2.h"
#include "heed/core/kernels/attention/attention_tensor_core_device.h"

namespace heed::kernel {

/// Sums of a row are relative to its greatest number, which is kept as the products gave it: what is taken
/// from that is exactly zero there and never above, however steep the scale. weight_sum holds this lane's
/// part; four lanes share a row.
template <int M>
struct WarpOnlineSoftmax {
  float max_score[M][2], weight_sum[M][2];

  /// Begins each row with the score `sink`; -infinity: none.
  __device__ void start(const WarpPlace& me, float sink) {
#pragma unroll
    for (int m = 0; m < M; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        max_score[m][half] = sink;
        weight_sum[m][half] = me.lane % 4 == 0 && sink != -infinity<float> ? 1.0F : 0.0F;
      }
    }
  }
  /// The map (-infinity where there is no pair) times `unit`, which is above 0, are the scores. Makes weights
  /// of it, each multiplied by what keep_of(m, half)(n, e) says; older sums shrink.
  template <int N, class KeepOf>
  __device__ void scores_to_weights(WarpSums<M, key_tile / 8>& map, float unit, WarpSums<M, N>& sums,
                                    KeepOf keep_of) {
#pragma unroll
    for (int m = 0; m < M; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float new_max = -infinity<float>;
#pragma unroll
        for (int n = 0; n < key_tile / 8; ++n)
          new_max = fmaxf(new_max, fmaxf(map.x[m][n][2 * half], map.x[m][n][2 * half + 1]));
        for (int bits = 2; bits > 0; bits /= 2)
          new_max = fmaxf(new_max, __shfl_xor_sync(0xffffffffU, new_max, bits));
        const float old_max = max_score[m][half];
        max_score[m][half] = fmaxf(old_max, new_max);
        const float correction = cuda::fast_exp2((old_max - base(m, half)) * unit);
#pragma unroll
        for (int n = 0; n < N; ++n) {
          sums.x[m][n][2 * half] *= correction;
          sums.x[m][n][2 * half + 1] *= correction;
        }
        const auto keep = keep_of(m, half);
        const float from = base(m, half);
        float sum = 0.0F;
#pragma unroll
        for (int n = 0; n < key_tile / 8; ++n) {
#pragma unroll
          for (int e = 2 * half; e < 2 * half + 2; ++e) {
            float& p = map.x[m][n][e];
            p = cuda::fast_exp2((p - from) * unit);
            sum += p;
            p *= keep(n, e);
          }
        }
        weight_sum[m][half] = weight_sum[m][half] * correction + sum;
      }
    }
  }
  /// Returns the factor that normalises a row, and the log of its sum. All lanes of the warp call it.
  __device__ float finish(int m, int half, float unit, RowLog<float>& lse) const {
    float all = weight_sum[m][half];
    for (int bits = 2; bits > 0; bits /= 2) all += __shfl_xor_sync(0xffffffffU, all, bits);
    lse = all == 0.0F ? RowLog<float>::of_no_keys() : RowLog<float>::of(max_score[m][half] * unit, log2(all));
    return all == 0.0F ? 0.0F : 1.0F / all;
  }

 private:
  /// What the exponents of a row are taken from: zero where there is no key yet, so that weights are 2^-inf,
  /// not NaN.
  __device__ float base(int m, int half) const {
    return max_score[m][half] == -infinity<float> ? 0.0F : max_score[m][half];
  }
};

}  // namespace heed::kernel
