// The running softmax of a warp's rows, where scores lie as the tensor cores leave them: in registers. Its
// instructions for each pair, not the products, are what the forward pass of attention waits for.
#pragma once

#include "core/cuda/exp2.h"
#include "core/kernels/attention_rounded_device.h"

namespace heed::kernel {

/// Sums of a row are relative to its greatest number, which is kept as the products gave it: what is taken
/// from that is exactly zero there and never above, however steep the scale. The totals are shares of the
/// four lanes of a row.
template <int M>
struct WarpRunningRows {
  float most[M][2], total[M][2];

  /// Each row begins with the score `sink`; -infinity: with nothing.
  __device__ void start(const WarpPlace& me, float sink) {
#pragma unroll
    for (int m = 0; m < M; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        most[m][half] = sink;
        total[m][half] = me.lane % 4 == 0 && sink != -infinity<float> ? 1.0F : 0.0F;
      }
    }
  }
  /// The map (-infinity where there is no pair) times `unit`, which is above 0, are the scores. Makes weights
  /// of it, each multiplied by what keep_of(m, half)(n, e) says; older sums shrink.
  template <int N, class KeepOf>
  __device__ void weigh(WarpSums<M, met / 8>& map, float unit, WarpSums<M, N>& sums, KeepOf keep_of) {
#pragma unroll
    for (int m = 0; m < M; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float top = -infinity<float>;
#pragma unroll
        for (int n = 0; n < met / 8; ++n)
          top = fmaxf(top, fmaxf(map.x[m][n][2 * half], map.x[m][n][2 * half + 1]));
        for (int bits = 2; bits > 0; bits /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffU, top, bits));
        const float before = most[m][half];
        most[m][half] = fmaxf(before, top);
        const float shrink = cuda::fast_exp2((before - base(m, half)) * unit);
#pragma unroll
        for (int n = 0; n < N; ++n) {
          sums.x[m][n][2 * half] *= shrink;
          sums.x[m][n][2 * half + 1] *= shrink;
        }
        const auto keep = keep_of(m, half);
        const float from = base(m, half);
        float sum = 0.0F;
#pragma unroll
        for (int n = 0; n < met / 8; ++n) {
#pragma unroll
          for (int e = 2 * half; e < 2 * half + 2; ++e) {
            float& p = map.x[m][n][e];
            p = cuda::fast_exp2((p - from) * unit);
            sum += p;
            p *= keep(n, e);
          }
        }
        total[m][half] = total[m][half] * shrink + sum;
      }
    }
  }
  /// What the sums of a row are multiplied by at the end, and the log of its total. All lanes of the warp.
  __device__ float finish(int m, int half, float unit, RowLog<float>& lse) const {
    float all = total[m][half];
    for (int bits = 2; bits > 0; bits /= 2) all += __shfl_xor_sync(0xffffffffU, all, bits);
    lse = all == 0.0F ? RowLog<float>::nothing() : RowLog<float>::of(most[m][half] * unit, log2(all));
    return all == 0.0F ? 0.0F : 1.0F / all;
  }

 private:
  /// What the exponents of a row are taken from: zero where there is no key yet, so that weights are 2^-inf,
  /// not NaN.
  __device__ float base(int m, int half) const {
    return most[m][half] == -infinity<float> ? 0.0F : most[m][half];
  }
};

}  // namespace heed::kernel
