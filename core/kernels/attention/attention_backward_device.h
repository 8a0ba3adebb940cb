// Attention backward on a device: statistics of the rows of queries.
#pragma once

#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/kernels/attention/attention_device.h"

namespace heed::kernel {

/// stats[row] = {lse, out . dout, factor} of each query row (b, h, i), by one warp; lanes are columns. Rows
/// past a packed sequence stay as they are.
template <class T>
__global__ void make_row_stats(AttentionShape x, HeadView<const T> outs, HeadView<const T> douts,
                               LseView<T> lse, RowStats<T>* stats) {
  const int64_t row = cuda::grid_warp();
  if (row >= x.B * x.H * x.Tq) return;
  const int64_t b = row / x.Tq / x.H, h = row / x.Tq % x.H, i = row % x.Tq;
  if (i >= x.num_queries(b)) return;
  const T delta = cuda::warp_dot(outs.at(b, h, i), douts.at(b, h, i), x.dv);
  if (cuda::lane() > 0) return;
  const auto [base, factor] = lse.at(row).weight_base();
  stats[row] = {lse.log[row] == minus_infinity<T> ? infinity<T> : base, delta, factor};
}

/// RowStats<T> [B, H, Tq] of all query rows of a call, stored as three numbers each.
template <class T>
Tensor row_stats(const AttentionShape& call, const Tensor& out, const Tensor& lse, const Tensor& dout) {
  const int64_t num_rows = call.B * call.H * call.Tq;
  const Tensor stats(Shape{3 * num_rows}, out.dtype(), out.device());
  cuda::run(make_row_stats<T>, cuda::warp_per_row(num_rows), call, HeadView<const T>(out, call.query_starts),
            HeadView<const T>(dout, call.query_starts), LseView<T>(lse, num_rows),
            reinterpret_cast<RowStats<T>*>(stats.data<T>()));
  return stats;
}

}  // namespace heed::kernel
