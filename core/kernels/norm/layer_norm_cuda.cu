// Layer normalisation on a GPU. A warp keeps a row of up to 1024 numbers in its registers.
#include "heed/core/kernels/norm/layer_norm.h"

#include <algorithm>
#include <cmath>

#include "heed/core/ceil_div.h"
#include "heed/core/kernels/elementwise/dropout_device.h"
#include "heed/core/kernels/norm/layer_norm_rows.h"
#include "heed/core/kernels/norm/layer_norm_scaling.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

using cuda::lane;
using cuda::lanes;

/// What a kernel of LayerNorm reads besides x, and what it writes, for activations of type S.
template <class S>
struct NormalisedRows {
  const Computed<S>*gain, *bias;  ///< [d]; the bias may be null
  S* y;                           ///< [rows, d]
  Computed<S>*means, *rstds;      ///< [rows]
};

/// y[row, :] = gain (x - mean) rstd + bias for a row x of up to 32 per_lane numbers that a warp has in its
/// registers: x[j] is number lane + 32 j, and 0 behind the last one.
template <class S, class T, int per_lane>
__device__ void normalise_row(const T (&x)[per_lane], int64_t row, const LayerNormScaling& scaling,
                              const NormalisedRows<S>& out) {
  const int64_t width = scaling.width;
  T total = 0, squares = 0;
  for (int j = 0; j < per_lane; ++j) total += x[j];
  const T mean = scaling.centre(cuda::warp_sum(total) / static_cast<T>(width));
  for (int j = 0; j < per_lane; ++j) {
    const T deviation = lane() + j * lanes < width ? x[j] - mean : T(0);
    squares += deviation * deviation;
  }
  const T rstd = scaling.rstd(cuda::warp_sum(squares));
  if (lane() == 0) {
    out.means[row] = mean;
    out.rstds[row] = rstd;
  }
  for (int j = 0; j < per_lane; ++j) {
    const int64_t i = lane() + j * lanes;
    if (i < width)
      out.y[row * width + i] =
          out.gain[i] * ((x[j] - mean) * rstd) + (out.bias != nullptr ? out.bias[i] : T(0));
  }
}

/// Normalises rows x[row, :] of up to 32 per_lane numbers: one warp per row.
template <class S, int per_lane>
__global__ void __launch_bounds__(cuda::block)
    short_rows(const S* x, int64_t rows, LayerNormScaling scaling, NormalisedRows<S> out) {
  using T = Computed<S>;
  const int64_t row = cuda::grid_warp(), width = scaling.width;
  if (row >= rows) return;
  T value[per_lane];
  read_row(x + row * width, static_cast<int>(width), value);
  normalise_row(value, row, scaling, out);
}

/// Inputs and sum of AddDropoutNorm.
template <class S>
struct AddedRows {
  const S *x, *branch;  ///< [rows, d]
  S* sum;               ///< [rows, d]
  int64_t rows;
};

/// Rows that a warp of short_sums_of_rows() takes: the lanes draw their dropout masks, of 16 numbers each, at
/// once.
HEED_BOTH int rows_per_warp(int64_t width) {
  const int masks_per_row = static_cast<int>(ceil_div(width, DropoutBits::block));
  return std::max(1, std::min(4, lanes / masks_per_row));
}

/// sum = x + dropout(branch) and its normalised rows, of up to 32 per_lane numbers.
template <class S, int per_lane>
__global__ void __launch_bounds__(cuda::block)
    short_sums_of_rows(AddedRows<S> in, DropoutBits bits, LayerNormScaling scaling, NormalisedRows<S> out) {
  using T = Computed<S>;
  constexpr int masks_per_lane = per_lane > DropoutBits::block ? 2 : 1;
  const int width = static_cast<int>(scaling.width), blocks = ceil_div(width, DropoutBits::block);
  const int count = rows_per_warp(width);
  const int64_t first = cuda::grid_warp() * count;
  if (first >= in.rows) return;
  const uint64_t high = bits.high();
  // Block b of row first + r has the number r blocks + b: lane n draws the masks of numbers n and n + 32.
  uint32_t masks[masks_per_lane];
  for (int m = 0; m < masks_per_lane; ++m) {
    const int number = lane() + m * lanes, column = number % blocks * DropoutBits::block;
    const int64_t row = first + number / blocks;
    masks[m] =
        number < count * blocks && row < in.rows
            ? bits.keep_mask(high, row, width, column, std::min(width - column, int{DropoutBits::block}))
            : 0;
  }
  const T scale = static_cast<T>(bits.scale);
  for (int r = 0; r < count && first + r < in.rows; ++r) {
    const int64_t row = first + r;
    T value[per_lane], branch[per_lane];
    read_row(in.x + row * width, width, value);
    read_row(in.branch + row * width, width, branch);
    for (int j = 0; j < per_lane; ++j) {
      const int i = lane() + j * lanes, number = r * blocks + i / DropoutBits::block;
      const uint32_t mask = __shfl_sync(cuda::all_lanes, masks[masks_per_lane * j / lanes], number % lanes);
      const S sum = value[j] + (((mask >> (i % DropoutBits::block)) & 1U) != 0 ? branch[j] * scale : T(0));
      if (i < width) in.sum[row * width + i] = sum;
      value[j] = T(sum);
    }
    normalise_row(value, row, scaling, out);
  }
}

/// Normalises rows x[row, :] of any width: one block per row, which reads it three times.
template <class S>
__global__ void __launch_bounds__(cuda::block)
    long_rows(const S* x, LayerNormScaling scaling, NormalisedRows<S> out) {
  using T = Computed<S>;
  __shared__ T scratch[lanes];
  const int64_t row = blockIdx.x, width = scaling.width;
  x += row * width;
  S* y = out.y + row * width;
  T total = 0, squares = 0;
  for (int64_t i = threadIdx.x; i < width; i += cuda::block) total += T(x[i]);
  const T mean = scaling.centre(cuda::block_sum(total, scratch) / static_cast<T>(width));
  for (int64_t i = threadIdx.x; i < width; i += cuda::block) squares += (T(x[i]) - mean) * (T(x[i]) - mean);
  const T rstd = scaling.rstd(cuda::block_sum(squares, scratch));
  if (threadIdx.x == 0) {
    out.means[row] = mean;
    out.rstds[row] = rstd;
  }
  for (int64_t i = threadIdx.x; i < width; i += cuda::block)
    y[i] = out.gain[i] * ((T(x[i]) - mean) * rstd) + (out.bias != nullptr ? out.bias[i] : T(0));
}

template <class S>
NormalisedRows<S> written_rows(const LayerNormTensors& t) {
  using T = Computed<S>;
  return {.gain = t.gain.data<T>(),
          .bias = cuda::pointer<T>(t.bias),
          .y = t.y.data<S>(),
          .means = t.mean.data<T>(),
          .rstds = t.rstd.data<T>()};
}

}  // namespace

/// y, mean and rstd: one warp per row of up to 1024 numbers, else one block per row.
void LayerNorm::cuda(const LayerNormTensors& t, double epsilon, NormScale scale) {
  if (t.x.size() == 0) return;
  const LayerNormScaling scaling{.epsilon = epsilon, .scale = scale, .width = t.x.extent(-1)};
  const int64_t rows = t.x.size() / scaling.width;
  visit_activation("layer_norm", t.x.dtype(), [&]<class S>(Type<S>) {
    const S* x = t.x.data<S>();
    if (scaling.width > short_width)
      return cuda::run(long_rows<S>, cuda::block_per_row(rows), x, scaling, written_rows<S>(t));
    with_per_lane(scaling.width, [&](auto per_lane) {
      cuda::run(short_rows<S, decltype(per_lane)::value>, cuda::warp_per_row(rows), x, rows, scaling,
                written_rows<S>(t));
    });
  });
  Count::add(t.x.size());
}

/// The sum, y, mean and rstd by one kernel for rows of up to 1024 numbers, else by one for the sum and one
/// for the rest.
void AddDropoutNorm::cuda(const Tensor& x, const Tensor& branch, const DropoutMask& mask,
                          const LayerNormTensors& t, double epsilon, NormScale scale) {
  if (t.x.size() == 0) return;
  const LayerNormScaling scaling{.epsilon = epsilon, .scale = scale, .width = t.x.extent(-1)};
  if (scaling.width > short_width) {
    AddDropout::cuda(x, branch, mask, t.x);
    return LayerNorm::cuda(t, epsilon, scale);
  }
  const int64_t rows = t.x.size() / scaling.width;
  visit_activation("add_dropout_norm", t.x.dtype(), [&]<class S>(Type<S>) {
    const AddedRows<S> in{.x = x.data<S>(), .branch = branch.data<S>(), .sum = t.x.data<S>(), .rows = rows};
    with_per_lane(scaling.width, [&](auto per_lane) {
      cuda::run(short_sums_of_rows<S, decltype(per_lane)::value>,
                cuda::warp_per_row(ceil_div(rows, rows_per_warp(scaling.width))), in,
                DropoutBits(t.x.shape(), mask), scaling, written_rows<S>(t));
    });
  });
  Count::add(2 * t.x.size());
}

}  // namespace heed::kernel
