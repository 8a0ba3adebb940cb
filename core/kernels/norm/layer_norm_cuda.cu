// Layer normalisation on a GPU. A warp keeps a row of up to 1024 numbers in its registers; it then sums the
// gradients of gain and bias in the same pass, per block, and the sums of blocks are added in order
// afterwards.
#include "heed/core/kernels/norm/layer_norm.h"

#include <algorithm>
#include <cmath>

#include "heed/core/ceil_div.h"
#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/kernels/norm/layer_norm_scaling.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

using cuda::lane;
using cuda::lanes;

constexpr int64_t short_width = 1024;      ///< up to here a warp takes a row
constexpr int block_warps = 4;             ///< warps of a block that sums dgain and dbias of its rows
constexpr int64_t max_partial_sums = 528;  ///< partial sums of dgain and dbias

/// y[row, :] = gain (x[row, :] - mean) rstd + bias, for rows of up to 32 per_lane numbers: one warp per row,
/// which keeps it in registers.
template <class T, int per_lane>
__global__ void __launch_bounds__(cuda::block)
    short_rows(const T* x, const T* gain, const T* bias, int64_t rows, LayerNormScaling scaling, T* y,
               T* means, T* rstds) {
  const int64_t row = cuda::grid_warp(), width = scaling.width;
  if (row >= rows) return;
  x += row * width;
  y += row * width;
  T value[per_lane], total = 0, squares = 0;
  for (int j = 0; j < per_lane; ++j) {
    const int64_t i = lane() + j * lanes;
    value[j] = i < width ? x[i] : T(0);
    total += value[j];
  }
  const T mean = scaling.centre(cuda::warp_sum(total) / static_cast<T>(width));
  for (int j = 0; j < per_lane; ++j) {
    const T deviation = lane() + j * lanes < width ? value[j] - mean : T(0);
    squares += deviation * deviation;
  }
  const T rstd = scaling.rstd(cuda::warp_sum(squares));
  if (lane() == 0) {
    means[row] = mean;
    rstds[row] = rstd;
  }
  for (int j = 0; j < per_lane; ++j) {
    const int64_t i = lane() + j * lanes;
    if (i < width) y[i] = gain[i] * ((value[j] - mean) * rstd) + (bias != nullptr ? bias[i] : T(0));
  }
}

/// y[row, :] = gain (x[row, :] - mean) rstd + bias for rows of any width: one block per row, which reads it
/// three times.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    long_rows(const T* x, const T* gain, const T* bias, LayerNormScaling scaling, T* y, T* means, T* rstds) {
  __shared__ T scratch[lanes];
  const int64_t row = blockIdx.x, width = scaling.width;
  x += row * width;
  y += row * width;
  T total = 0, squares = 0;
  for (int64_t i = threadIdx.x; i < width; i += cuda::block) total += x[i];
  const T mean = scaling.centre(cuda::block_sum(total, scratch) / static_cast<T>(width));
  for (int64_t i = threadIdx.x; i < width; i += cuda::block) squares += (x[i] - mean) * (x[i] - mean);
  const T rstd = scaling.rstd(cuda::block_sum(squares, scratch));
  if (threadIdx.x == 0) {
    means[row] = mean;
    rstds[row] = rstd;
  }
  for (int64_t i = threadIdx.x; i < width; i += cuda::block)
    y[i] = gain[i] * ((x[i] - mean) * rstd) + (bias != nullptr ? bias[i] : T(0));
}

/// Inputs of the gradient.
template <class T>
struct BackwardInputs {
  const T *x, *dy;         ///< [rows, d]
  const T* gain;           ///< [d]
  const T *means, *rstds;  ///< [rows]
  int64_t rows;
};

/// dx[row, :] = rstd (g - mean(g) - h k) with g = gain dy and h = (x - mean) rstd, for rows of up to 32
/// per_lane numbers: one warp per row, in steps of the grid. partial_sums [block, 2, width] are dgain and
/// dbias of the block's rows.
template <class T, int per_lane>
__global__ void __launch_bounds__(block_warps* lanes)
    short_gradients(BackwardInputs<T> in, LayerNormScaling scaling, T* dx, T* partial_sums) {
  __shared__ T shared_sums[2][block_warps][lanes];
  const int64_t width = scaling.width;
  T dgain[per_lane], dbias[per_lane];
  for (int j = 0; j < per_lane; ++j) dgain[j] = dbias[j] = T(0);
  for (int64_t row = cuda::grid_warp(); row < in.rows; row += cuda::grid_warps()) {
    const T mean = in.means[row], rstd = in.rstds[row];
    T h[per_lane], g[per_lane], sum_g = 0, sum_gh = 0;
    for (int j = 0; j < per_lane; ++j) {
      const int64_t i = lane() + j * lanes;
      const T dy = i < width ? in.dy[row * width + i] : T(0);
      h[j] = i < width ? (in.x[row * width + i] - mean) * rstd : T(0);
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
      if (i < width) dx[row * width + i] = rstd * (g[j] - mean_g - h[j] * k);
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
template <class T>
__global__ void __launch_bounds__(cuda::block)
    long_gradients(BackwardInputs<T> in, LayerNormScaling scaling, T* dx) {
  __shared__ T scratch[lanes];
  const int64_t row = blockIdx.x, width = scaling.width, first = row * width;
  const T mean = in.means[row], rstd = in.rstds[row];
  T sum_g = 0, sum_gh = 0;
  for (int64_t i = threadIdx.x; i < width; i += cuda::block) {
    const T g = in.dy[first + i] * in.gain[i];
    sum_g += g;
    sum_gh += g * ((in.x[first + i] - mean) * rstd);
  }
  const T mean_g = scaling.centre(cuda::block_sum(sum_g, scratch) / static_cast<T>(width));
  const T k = scaling.gradient_factor(cuda::block_sum(sum_gh, scratch), rstd);
  for (int64_t i = threadIdx.x; i < width; i += cuda::block)
    dx[first + i] = rstd * (in.dy[first + i] * in.gain[i] - mean_g - (in.x[first + i] - mean) * rstd * k);
}

/// partial_sums [part, 2, width] = dgain and dbias of rows_per_part rows, where rows are long: one thread per
/// column and part.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    long_sums(BackwardInputs<T> in, int64_t rows_per_part, int64_t width, T* partial_sums) {
  const int64_t i = int64_t{blockIdx.x} * cuda::block + threadIdx.x, part = blockIdx.y;
  if (i >= width) return;
  T dgain = 0, dbias = 0;
  for (int64_t row = part * rows_per_part; row < std::min(in.rows, (part + 1) * rows_per_part); ++row) {
    const T dy = in.dy[row * width + i];
    dgain += dy * ((in.x[row * width + i] - in.means[row]) * in.rstds[row]);
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

}  // namespace

/// y, mean and rstd: one warp per row of up to 1024 numbers, else one block per row.
void LayerNorm::cuda(const LayerNormTensors& t, double epsilon, NormScale scale) {
  if (t.x.size() == 0) return;
  const LayerNormScaling scaling{.epsilon = epsilon, .scale = scale, .width = t.x.extent(-1)};
  const int64_t rows = t.x.size() / scaling.width;
  visit_float("layer_norm", t.x.dtype(), [&]<class T>(Type<T>) {
    const T *x = t.x.data<T>(), *gain = t.gain.data<T>(), *bias = cuda::pointer<T>(t.bias);
    T *y = t.y.data<T>(), *means = t.mean.data<T>(), *rstds = t.rstd.data<T>();
    if (scaling.width > short_width)
      return cuda::run(long_rows<T>, cuda::block_per_row(rows), x, gain, bias, scaling, y, means, rstds);
    with_per_lane(scaling.width, [&](auto per_lane) {
      cuda::run(short_rows<T, decltype(per_lane)::value>, cuda::warp_per_row(rows), x, gain, bias, rows,
                scaling, y, means, rstds);
    });
  });
  Count::add(t.x.size());
}

/// dx, dgain and dbias. For rows of up to 1024 numbers one kernel gives dx and the partial sums of each
/// block; else one gives dx and another the partial sums of runs of rows. The partial sums [count, 2, d] are
/// then added in order.
void LayerNormBack::cuda(const LayerNormBackTensors& t, double epsilon, NormScale scale) {
  const LayerNormScaling scaling{.epsilon = epsilon, .scale = scale, .width = t.x.extent(-1)};
  const int64_t width = scaling.width, rows = width > 0 ? t.x.size() / width : 0;
  visit_float("layer_norm", t.x.dtype(), [&]<class T>(Type<T>) {
    const BackwardInputs<T> in{.x = t.x.data<T>(),
                               .dy = t.dy.data<T>(),
                               .gain = t.gain.data<T>(),
                               .means = t.mean.data<T>(),
                               .rstds = t.rstd.data<T>(),
                               .rows = rows};
    T* dx = t.dx.data<T>();
    // `count` partial sums of dgain and dbias: one per block, or where rows are long one per rows_per_part
    // rows.
    const bool is_short = width <= short_width;
    const int64_t max_parts = ceil_div(rows, is_short ? 2 * block_warps : 32);
    const int64_t rows_per_part = ceil_div(rows, std::min(std::max<int64_t>(max_parts, 1), max_partial_sums));
    const int64_t count = is_short ? std::min(max_parts, max_partial_sums)
                                   : (rows_per_part > 0 ? ceil_div(rows, rows_per_part) : 0);
    const Tensor parts = empty_like(t.x, Shape{std::max<int64_t>(count, 1), 2, width});
    T* sums = parts.data<T>();
    if (is_short) {
      with_per_lane(width, [&](auto per_lane) {
        cuda::run(short_gradients<T, decltype(per_lane)::value>,
                  cuda::block_per_row(count, block_warps * lanes), in, scaling, dx, sums);
      });
    } else if (rows > 0) {
      cuda::run(long_gradients<T>, cuda::block_per_row(rows), in, scaling, dx);
      const cuda::Grid grid{
          .blocks = dim3(static_cast<unsigned>(ceil_div(width, cuda::block)), static_cast<unsigned>(count)),
          .threads = dim3(cuda::block)};
      cuda::run(long_sums<T>, grid, in, rows_per_part, width, sums);
    }
    cuda::run(add_partial_sums<T>, cuda::block_per_row(ceil_div(2 * width, lanes)), sums, count, width,
              t.dgain.data<T>(), cuda::pointer<T>(t.dbias));
  });
  Count::add(t.x.size());
}

}  // namespace heed::kernel
