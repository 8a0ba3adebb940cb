// Attention backward on a device: statistics of the rows of queries.
#pragma once

#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/kernels/attention/attention_device.h"

namespace heed::kernel {

/// stats[row] = {lse, out . dout, factor} of each query row (b, h, i), by one warp; lanes are columns.
template <class T>
__global__ void make_row_stats(HeadView<const T> outs, HeadView<const T> douts, LseView<T> lse,
                               int64_t num_rows, int64_t H, int64_t Tq, int64_t dv, RowStats<T>* stats) {
  const int64_t row = cuda::grid_warp();
  if (row >= num_rows) return;
  const int64_t b = row / Tq / H, h = row / Tq % H, i = row % Tq;
  const T delta = cuda::warp_dot(outs.at(b, h, i), douts.at(b, h, i), dv);
  if (cuda::lane() > 0) return;
  const auto [base, factor] = lse.at(row).weight_base();
  stats[row] = {lse.log[row] == minus_infinity<T> ? infinity<T> : base, delta, factor};
}

/// RowStats<T> [B, H, Tq] of all query rows, stored as three numbers each.
template <class T>
Tensor row_stats(const Tensor& out, const Tensor& lse, const Tensor& dout) {
  const int64_t H = out.extent(1), Tq = out.extent(2), num_rows = out.extent(0) * H * Tq;
  const Tensor stats(Shape{3 * num_rows}, out.dtype(), out.device());
  cuda::run(make_row_stats<T>, cuda::warp_per_row(num_rows), HeadView<const T>(out), HeadView<const T>(dout),
            LseView<T>(lse, num_rows), num_rows, H, Tq, out.extent(3),
            reinterpret_cast<RowStats<T>*>(stats.data<T>()));
  return stats;
}

}  // namespace heed::kernel
