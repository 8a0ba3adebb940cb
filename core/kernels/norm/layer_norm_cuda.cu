// Layer normalisation on a GPU. A warp keeps a row of up to 1024 numbers in its registers; it then sums the
// gradients of gain and bias in the same pass, per block, and the sums of blocks are added in order
// afterwards.
#include "heed/core/kernels/norm/layer_norm.h"

#include <algorithm>
#include <cmath>

#include "heed/core/ceil_div.h"
#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/kernels/elementwise/activation_types.h"
#include "heed/core/kernels/elementwise/dropout_device.h"
#include "heed/core/kernels/norm/layer_norm_scaling.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

using cuda::lane;
using cuda::lanes;

constexpr int64_t short_width = 1024;      ///< up to here a warp takes a row
constexpr int block_warps = 4;             ///< warps of a block that sums dgain and dbias of its rows
constexpr int64_t max_partial_sums = 528;  ///< partial sums of dgain and dbias

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
  for (int j = 0; j < per_lane; ++j) {
    const int64_t i = lane() + j * lanes;
    value[j] = i < width ? T(x[row * width + i]) : T(0);
  }
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
    T value[per_lane];
    for (int j = 0; j < per_lane; ++j) {
      const int i = lane() + j * lanes, number = r * blocks + i / DropoutBits::block;
      const uint32_t mask =
          __shfl_sync(cuda::all_lanes, masks[masks_per_lane * j / per_lane], number % lanes);
      value[j] = T(0);
      if (i >= width) continue;
      const int64_t at = row * width + i;
      const T kept = ((mask >> (i % DropoutBits::block)) & 1U) != 0 ? T(in.branch[at]) * scale : T(0);
      const S sum = T(in.x[at]) + kept;
      in.sum[at] = sum;
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

/// Inputs of the gradient, for activations of type S.
template <class S>
struct BackwardInputs {
  const S *x, *dy;                  ///< [rows, d]
  const S* so_far;                  ///< [rows, d], added to dx; null: nothing
  const Computed<S>* gain;          ///< [d]
  const Computed<S>*means, *rstds;  ///< [rows]
  int64_t rows;

  /// Element i of the gradient of x, of which this is the norm's part.
  __device__ S gradient(int64_t i, Computed<S> part) const {
    return so_far == nullptr ? part : Computed<S>(so_far[i]) + part;
  }
};

/// dx[row, :] = rstd (g - mean(g) - h k) with g = gain dy and h = (x - mean) rstd, for rows of up to 32
/// per_lane numbers: one warp per row, in steps of the grid. partial_sums [block, 2, width] are dgain and
/// dbias of the block's rows.
template <class S, int per_lane>
__global__ void __launch_bounds__(block_warps* lanes)
    short_gradients(BackwardInputs<S> in, LayerNormScaling scaling, S* dx, Computed<S>* partial_sums) {
  using T = Computed<S>;
  __shared__ T shared_sums[2][block_warps][lanes];
  const int64_t width = scaling.width;
  T dgain[per_lane], dbias[per_lane];
  for (int j = 0; j < per_lane; ++j) dgain[j] = dbias[j] = T(0);
  for (int64_t row = cuda::grid_warp(); row < in.rows; row += cuda::grid_warps()) {
    const T mean = in.means[row], rstd = in.rstds[row];
    T h[per_lane], g[per_lane], sum_g = 0, sum_gh = 0;
    for (int j = 0; j < per_lane; ++j) {
      const int64_t i = lane() + j * lanes;
      const T dy = i < width ? T(in.dy[row * width + i]) : T(0);
      h[j] = i < width ? (T(in.x[row * width + i]) - mean) * rstd : T(0);
      g[j] = i < width ? dy * in.gain[i] : T(0);
      sum_g += g[j];
      sum_gh += g[j] * h[j];
      dgain[j] += dy * h[j];
      dbias[j] += dy;
    }
    const T mean_g = scaling.centre(cuda::warp_sum(sum_g) / static_cast<T>(width));
    const T k = scaling.gradient_factor(cuda::warp_sum(sum_gh), rstd);
    for (int j = 0; j < per_lane; ++j) {
      const int64_t i = lane() + j * lanes;
      if (i < width) dx[row * width + i] = in.gradient(row * width + i, rstd * (g[j] - mean_g - h[j] * k));
    }
  }
  T* block_sums = partial_sums + 2 * width * blockIdx.x;
  const int warp = static_cast<int>(threadIdx.x) / lanes;
  for (int j = 0; j < per_lane; ++j) {
    __syncthreads();
    shared_sums[0][warp][lane()] = dgain[j];
    shared_sums[1][warp][lane()] = dbias[j];
    __syncthreads();
    const int64_t i = lane() + j * lanes;
    if (warp > 1 || i >= width) continue;  // warp 0 adds the sums of dgain, warp 1 those of dbias
    T total = 0;
    for (int w = 0; w < block_warps; ++w) total += shared_sums[warp][w][lane()];
    block_sums[warp * width + i] = total;
  }
}

/// dx[row, :] = rstd (g - mean(g) - h k) with g = gain dy and h = (x - mean) rstd: one block per row, which
/// reads it twice.
template <class S>
__global__ void __launch_bounds__(cuda::block)
    long_gradients(BackwardInputs<S> in, LayerNormScaling scaling, S* dx) {
  using T = Computed<S>;
  __shared__ T scratch[lanes];
  const int64_t row = blockIdx.x, width = scaling.width, first = row * width;
  const T mean = in.means[row], rstd = in.rstds[row];
  T sum_g = 0, sum_gh = 0;
  for (int64_t i = threadIdx.x; i < width; i += cuda::block) {
    const T g = T(in.dy[first + i]) * in.gain[i];
    sum_g += g;
    sum_gh += g * ((T(in.x[first + i]) - mean) * rstd);
  }
  const T mean_g = scaling.centre(cuda::block_sum(sum_g, scratch) / static_cast<T>(width));
  const T k = scaling.gradient_factor(cuda::block_sum(sum_gh, scratch), rstd);
  for (int64_t i = threadIdx.x; i < width; i += cuda::block)
    dx[first + i] = in.gradient(first + i, rstd * (T(in.dy[first + i]) * in.gain[i] - mean_g -
                                                   (T(in.x[first + i]) - mean) * rstd * k));
}

/// partial_sums [part, 2, width] = dgain and dbias of rows_per_part rows, where rows are long: one thread per
/// column and part.
template <class S>
__global__ void __launch_bounds__(cuda::block)
    long_sums(BackwardInputs<S> in, int64_t rows_per_part, int64_t width, Computed<S>* partial_sums) {
  using T = Computed<S>;
  const int64_t i = int64_t{blockIdx.x} * cuda::block + threadIdx.x, part = blockIdx.y;
  if (i >= width) return;
  T dgain = 0, dbias = 0;
  for (int64_t row = part * rows_per_part; row < std::min(in.rows, (part + 1) * rows_per_part); ++row) {
    const T dy = in.dy[row * width + i];
    dgain += dy * ((T(in.x[row * width + i]) - in.means[row]) * in.rstds[row]);
    dbias += dy;
  }
  partial_sums[2 * part * width + i] = dgain;
  partial_sums[(2 * part + 1) * width + i] = dbias;
}

/// dgain and dbias = sums over `count` parts of partial_sums [count, 2, width]: eight warps share the parts
/// of 32 columns, and their sums are added in order.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    add_partial_sums(const T* partial_sums, int64_t count, int64_t width, T* dgain, T* dbias) {
  constexpr int num_warps = cuda::block / lanes;
  __shared__ double sums[num_warps][lanes];
  const int64_t column = int64_t{blockIdx.x} * lanes + lane();  // in a row [dgain, dbias]
  const int warp = static_cast<int>(threadIdx.x) / lanes;
  double total = 0;
  for (int64_t part = warp; part < count && column < 2 * width; part += num_warps)
    total += static_cast<double>(partial_sums[2 * part * width + column]);
  sums[warp][lane()] = total;
  __syncthreads();
  if (warp > 0 || column >= 2 * width) return;
  for (int w = 1; w < num_warps; ++w) total += sums[w][lane()];
  if (column < width)
    dgain[column] = static_cast<T>(total);
  else if (dbias != nullptr)
    dbias[column - width] = static_cast<T>(total);
}

/// Calls f(std::integral_constant<int, per_lane>), per_lane being the numbers of a row that each lane keeps.
template <class F>
void with_per_lane(int64_t width, F&& f) {
  if (width <= 4 * lanes) return f(std::integral_constant<int, 4>{});
  if (width <= 8 * lanes) return f(std::integral_constant<int, 8>{});
  if (width <= 16 * lanes) return f(std::integral_constant<int, 16>{});
  f(std::integral_constant<int, short_width / lanes>{});
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

/// dx, dgain and dbias. For rows of up to 1024 numbers one kernel gives dx and the partial sums of each
/// block; else one gives dx and another the partial sums of runs of rows. The partial sums [count, 2, d] are
/// then added in order.
void LayerNormBack::cuda(const LayerNormBackTensors& t, double epsilon, NormScale scale) {
  const LayerNormScaling scaling{.epsilon = epsilon, .scale = scale, .width = t.x.extent(-1)};
  const int64_t width = scaling.width, rows = width > 0 ? t.x.size() / width : 0;
  visit_activation("layer_norm", t.x.dtype(), [&]<class S>(Type<S>) {
    using T = Computed<S>;
    const BackwardInputs<S> in{.x = t.x.data<S>(),
                               .dy = t.dy.data<S>(),
                               .so_far = cuda::pointer<S>(t.so_far),
                               .gain = t.gain.data<T>(),
                               .means = t.mean.data<T>(),
                               .rstds = t.rstd.data<T>(),
                               .rows = rows};
    S* dx = t.dx.data<S>();
    // `count` partial sums of dgain and dbias: one per block, or where rows are long one per rows_per_part
    // rows.
    const bool is_short = width <= short_width;
    const int64_t max_parts = ceil_div(rows, is_short ? 2 * block_warps : 32);
    const int64_t rows_per_part = ceil_div(rows, std::min(std::max<int64_t>(max_parts, 1), max_partial_sums));
    const int64_t count = is_short ? std::min(max_parts, max_partial_sums)
                                   : (rows_per_part > 0 ? ceil_div(rows, rows_per_part) : 0);
    const Tensor parts = empty_like(t.gain, Shape{std::max<int64_t>(count, 1), 2, width});
    T* sums = parts.data<T>();
    if (is_short) {
      with_per_lane(width, [&](auto per_lane) {
        cuda::run(short_gradients<S, decltype(per_lane)::value>,
                  cuda::block_per_row(count, block_warps * lanes), in, scaling, dx, sums);
      });
    } else if (rows > 0) {
      cuda::run(long_gradients<S>, cuda::block_per_row(rows), in, scaling, dx);
      const cuda::Grid grid{
          .blocks = dim3(static_cast<unsigned>(ceil_div(width, cuda::block)), static_cast<unsigned>(count)),
          .threads = dim3(cuda::block)};
      cuda::run(long_sums<S>, grid, in, rows_per_part, width, sums);
    }
    cuda::run(add_partial_sums<T>, cuda::block_per_row(ceil_div(2 * width, lanes)), sums, count, width,
              t.dgain.data<T>(), cuda::pointer<T>(t.dbias));
  });
  Count::add(t.x.size());
}

}  // namespace heed::kernel
