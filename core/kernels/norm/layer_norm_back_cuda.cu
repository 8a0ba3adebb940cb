// The gradients of layer normalisation on a GPU. A warp keeps a row of up to 1024 numbers in its registers
// and sums the gradients of gain and bias in the same pass, per block; the sums of blocks are added in order
// afterwards.
#include <algorithm>

#include "heed/core/ceil_div.h"
#include "heed/core/kernels/elementwise/dropout_device.h"
#include "heed/core/kernels/norm/layer_norm.h"
#include "heed/core/kernels/norm/layer_norm_rows.h"
#include "heed/core/kernels/norm/layer_norm_scaling.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

using cuda::lane;
using cuda::lanes;

constexpr int block_warps = 4;    ///< warps of a block that sums dgain and dbias of its rows
constexpr int adding_warps = 32;  ///< warps of a block that adds such sums

/// Partial sums of dgain and dbias at most: rows of up to 256 numbers need few registers, so more blocks run
/// at once.
int64_t max_partial_sums(int64_t width) { return width <= 256 ? 1056 : 528; }

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

/// Where short_gradients() writes the gradient of the branch of AddDropoutNorm.
template <class S>
struct BranchGradient {
  S* data;  ///< [rows, d]; null: nothing is written
  DropoutBits bits;

  /// data[row, :] = dropout(dx[row, :]), of which lane l has the numbers l, l + 32, ... Lane n draws the
  /// masks of numbers 16 n to 16 n + 15, and of as many numbers 512 later.
  template <int per_lane>
  __device__ void write(const S (&dx)[per_lane], int64_t row, int width, uint64_t high) const {
    constexpr int masks_per_lane = per_lane > DropoutBits::block ? 2 : 1;
    uint32_t masks[masks_per_lane];
    for (int m = 0; m < masks_per_lane; ++m) {
      const int column = (lane() + m * lanes) * DropoutBits::block;
      masks[m] = column < width ? bits.keep_mask(high, row, width, column,
                                                 std::min(width - column, int{DropoutBits::block}))
                                : 0;
    }
    for (int j = 0; j < per_lane; ++j) {
      const int i = lane() + j * lanes;
      const uint32_t mask =
          __shfl_sync(cuda::all_lanes, masks[masks_per_lane * j / lanes], i / DropoutBits::block % lanes);
      const bool is_kept = ((mask >> (i % DropoutBits::block)) & 1U) != 0;
      if (i < width)
        data[row * width + i] =
            is_kept ? Computed<S>(dx[j]) * static_cast<Computed<S>>(bits.scale) : Computed<S>(0);
    }
  }
};

/// The numbers of a row that a lane of short_gradients() keeps.
template <class S, int per_lane>
struct GradientRow {
  Computed<S> x[per_lane], dy[per_lane], mean, rstd;

  __device__ void read(const BackwardInputs<S>& in, int64_t row, int width) {
    read_row(in.x + row * width, width, x);
    read_row(in.dy + row * width, width, dy);
    mean = in.means[row];
    rstd = in.rstds[row];
  }
};

/// dx[row, :] = rstd (g - mean(g) - h k) with g = gain dy and h = (x - mean) rstd, for rows of up to 32
/// per_lane numbers: one warp per row, in steps of the grid. partial_sums [block, 2, width] are dgain and
/// dbias of the block's rows. With `drops` also the gradient of the branch.
template <class S, int per_lane, bool drops>
__global__ void __launch_bounds__(block_warps* lanes)
    short_gradients(BackwardInputs<S> in, LayerNormScaling scaling, S* dx, BranchGradient<S> branch,
                    Computed<S>* partial_sums) {
  using T = Computed<S>;
  __shared__ T shared_sums[2][block_warps][lanes];
  constexpr int rows_at_once = per_lane <= 4 ? 2 : 1;  // short rows are read two at once
  const int width = static_cast<int>(scaling.width);
  T dgain[per_lane], dbias[per_lane];
  for (int j = 0; j < per_lane; ++j) dgain[j] = dbias[j] = T(0);
  [[maybe_unused]] const uint64_t high = drops ? branch.bits.high() : 0;
  for (int64_t first = cuda::grid_warp(); first < in.rows; first += rows_at_once * cuda::grid_warps()) {
    GradientRow<S, per_lane> rows[rows_at_once];
#pragma unroll
    for (int r = 0; r < rows_at_once; ++r)
      rows[r].read(in, std::min(first + r * cuda::grid_warps(), in.rows - 1), width);
#pragma unroll
    for (int r = 0; r < rows_at_once; ++r) {
      const int64_t row = first + r * cuda::grid_warps();
      if (row >= in.rows) continue;
      T(&h)[per_lane] = rows[r].x, (&g)[per_lane] = rows[r].dy, sum_g = 0, sum_gh = 0;
      for (int j = 0; j < per_lane; ++j) {
        const int i = lane() + j * lanes;
        const T dy = g[j];
        h[j] = i < width ? (h[j] - rows[r].mean) * rows[r].rstd : T(0);
        g[j] = dy * in.gain[std::min(i, width - 1)];
        sum_g += g[j];
        sum_gh += g[j] * h[j];
        dgain[j] += dy * h[j];
        dbias[j] += dy;
      }
      const T mean_g = scaling.centre(cuda::warp_sum(sum_g) / static_cast<T>(width));
      const T k = scaling.gradient_factor(cuda::warp_sum(sum_gh), rows[r].rstd);
      T so_far[per_lane] = {};
      if (in.so_far != nullptr) read_row(in.so_far + row * width, width, so_far);
      S dx_row[per_lane];
      for (int j = 0; j < per_lane; ++j) {
        const int i = lane() + j * lanes;
        const T part = rows[r].rstd * (g[j] - mean_g - h[j] * k);
        dx_row[j] = in.so_far == nullptr ? part : so_far[j] + part;
        if (i < width) dx[row * width + i] = dx_row[j];
      }
      if constexpr (drops) branch.write(dx_row, row, width, high);
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

/// dgain and dbias = sums over `count` parts of partial_sums [count, 2, width]: the warps of a block share
/// the parts of 32 columns, and their sums are added in order.
template <class T>
__global__ void __launch_bounds__(adding_warps* lanes)
    add_partial_sums(const T* partial_sums, int64_t count, int64_t width, T* dgain, T* dbias) {
  __shared__ double sums[adding_warps][lanes];
  const int64_t column = int64_t{blockIdx.x} * lanes + lane();  // in a row [dgain, dbias]
  const int warp = static_cast<int>(threadIdx.x) / lanes;
  double total = 0;
  for (int64_t part = warp; part < count && column < 2 * width; part += adding_warps)
    total += static_cast<double>(partial_sums[2 * part * width + column]);
  sums[warp][lane()] = total;
  __syncthreads();
  if (warp > 0 || column >= 2 * width) return;
  for (int w = 1; w < adding_warps; ++w) total += sums[w][lane()];
  if (column < width)
    dgain[column] = static_cast<T>(total);
  else if (dbias != nullptr)
    dbias[column - width] = static_cast<T>(total);
}

}  // namespace

/// dx, dgain, dbias and dbranch. For rows of up to 1024 numbers one kernel gives dx, dbranch and the partial
/// sums of each block; else one gives dx, another the partial sums of runs of rows, and Dropout gives
/// dbranch. The partial sums [count, 2, d] are then added in order.
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
    const int64_t max_count = max_partial_sums(width);
    const int64_t rows_per_part = ceil_div(rows, std::min(std::max<int64_t>(max_parts, 1), max_count));
    const int64_t count =
        is_short ? std::min(max_parts, max_count) : (rows_per_part > 0 ? ceil_div(rows, rows_per_part) : 0);
    const Tensor parts = empty_like(t.gain, Shape{std::max<int64_t>(count, 1), 2, width});
    T* sums = parts.data<T>();
    if (is_short) {
      with_per_lane(width, [&](auto per_lane) {
        constexpr int numbers = decltype(per_lane)::value;
        const BranchGradient<S> branch{cuda::pointer<S>(t.dbranch), DropoutBits(t.x.shape(), t.mask)};
        cuda::run(t.dbranch ? short_gradients<S, numbers, true> : short_gradients<S, numbers, false>,
                  cuda::block_per_row(count, block_warps * lanes), in, scaling, dx, branch, sums);
      });
    } else if (rows > 0) {
      cuda::run(long_gradients<S>, cuda::block_per_row(rows), in, scaling, dx);
      const cuda::Grid grid{
          .blocks = dim3(static_cast<unsigned>(ceil_div(width, cuda::block)), static_cast<unsigned>(count)),
          .threads = dim3(cuda::block)};
      cuda::run(long_sums<S>, grid, in, rows_per_part, width, sums);
      if (t.dbranch) Dropout::cuda(t.dx, t.mask, t.dbranch);
    }
    cuda::run(add_partial_sums<T>, cuda::block_per_row(ceil_div(2 * width, lanes), adding_warps * lanes),
              sums, count, width, t.dgain.data<T>(), cuda::pointer<T>(t.dbias));
  });
  Count::add(t.x.size());
}

}  // namespace heed::kernel
