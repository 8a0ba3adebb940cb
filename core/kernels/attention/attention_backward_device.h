// Attention backward on a device: the inputs of its kernels.
#pragma once

#include "heed/core/kernels/attention/attention_device.h"

namespace heed::kernel {

/// One warp per query: its log sum in units of log2, and out . dout.
template <class T>
__global__ void make_row_stats(HeadView<const T> outs, HeadView<const T> douts, RowLogs<T> lse, int64_t rows,
                               int64_t H, int64_t Tq, int64_t dv, RowStats<T>* to) {
  const int64_t row = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / 32;
  if (row >= rows) return;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const T *out = outs.at(row / Tq / H, row / Tq % H, row % Tq),
          *dout = douts.at(row / Tq / H, row / Tq % H, row % Tq);
  T sum = T(0);
  for (int64_t c = lane; c < dv; c += 32) sum += out[c] * dout[c];
#pragma unroll
  for (int bits = 16; bits > 0; bits /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, bits);
  if (lane > 0) return;
  const auto [base, share] = lse.at(row).split();
  to[row] = {lse.log[row] == -infinity<T> ? infinity<T> : base, sum, share};
}

/// The stats of every row, [B, H, Tq] of RowStats<T>.
template <class T>
Tensor row_stats(const Tensor& out, const Tensor& lse, const Tensor& dout) {
  const int64_t H = out.extent(1), Tq = out.extent(2), rows = out.extent(0) * H * Tq;
  const Tensor stats(Shape{3 * rows}, out.dtype(), out.device());
  cuda::run(make_row_stats<T>, {.blocks = dim3(static_cast<unsigned>((rows + 7) / 8)), .threads = dim3(256)},
            HeadView<const T>(out), HeadView<const T>(dout), RowLogs<T>(lse, rows), rows, H, Tq,
            out.extent(3), reinterpret_cast<RowStats<T>*>(stats.data<T>()));
  return stats;
}

template <class T>
struct AttentionBackCall : AttentionScores<T> {
  HeadView<const T> qs, ks, vs, douts;
  HeadView<T> dqs, dks, dvs;
  DeviceDraw drawn;
  const RowStats<T>* stats = nullptr;  ///< [B, H, Tq]
  T* diagonals = nullptr;  ///< [B, H, tiles of queries, Tk + 63]: sums of score gradients by i - j; or null

  AttentionBackCall(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionParams& params,
                    const Tensor& score_grad, const Tensor& to_q, const Tensor& to_k, const Tensor& to_v)
      : AttentionScores<T>(q, k, v, params),
        qs(q),
        ks(k),
        vs(v),
        douts(score_grad),
        dqs(to_q),
        dks(to_k),
        dvs(to_v),
        drawn(params.dropout, params.draw) {}
};

/// Writes dk and dv: one block per 64 keys of a key head loops over the queries that see them.
template <class T>
void attention_back_keys(const AttentionBackCall<T>& call);

}  // namespace heed::kernel
