// Layer normalisation on a GPU. A warp keeps a row of up to 1024 numbers in its registers; it then sums the
// gradients of gain and bias in the same pass, per block, and the sums of blocks are added in order
// afterwards.
#include "heed/core/kernels/norm/layer_norm.h"

#include <algorithm>
#include <cmath>

#include "heed/core/ceil_div.h"
#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

using cuda::lane;
using cuda::lanes;

constexpr int64_t short_width = 1024;
constexpr int team = 4;             ///< warps of a block that share the sums of gain and bias
constexpr int64_t max_parts = 528;  ///< of those sums

/// How rows are scaled.
struct Scaling {
  double epsilon;
  NormScale scale;
  int64_t width;

  template <class T>
  __device__ T reciprocal(T squares) const {
    const auto total = static_cast<double>(squares);
    if (scale == NormScale::variance)
      return static_cast<T>(1 / std::sqrt(total / static_cast<double>(width) + epsilon));
    const double deviation = width > 1 ? std::sqrt(total / static_cast<double>(width - 1)) : 0;
    return static_cast<T>(1 / (deviation + epsilon));
  }
  /// With g = gain dy and h = (x - mean) rstd: dx = rstd (g - mean(g) - h k).
  template <class T>
  __device__ T mean_product(T sum_gh, T rstd) const {
    const auto total = static_cast<double>(sum_gh);
    if (scale == NormScale::variance) return static_cast<T>(total / static_cast<double>(width));
    const double share = 1 - epsilon * static_cast<double>(rstd);  // deviation rstd
    return width > 1 && share > 0 ? static_cast<T>(total / (static_cast<double>(width - 1) * share)) : T(0);
  }
};

/// y[row, :] = gain (x[row, :] - mean) rstd + bias, for rows of up to 32 `each`: one warp per row, which
/// keeps it in registers.
template <class T, int each>
__global__ void __launch_bounds__(cuda::block)
    short_rows(const T* x, const T* gain, const T* bias, int64_t rows, Scaling scaling, T* y, T* means,
               T* rstds) {
  const int64_t row = cuda::grid_warp(), width = scaling.width;
  if (row >= rows) return;
  x += row * width;
  y += row * width;
  T value[each], total = 0, squares = 0;
  for (int j = 0; j < each; ++j) {
    const int64_t i = lane() + j * lanes;
    value[j] = i < width ? x[i] : T(0);
    total += value[j];
  }
  const T mean = cuda::warp_sum(total) / static_cast<T>(width);
  for (int j = 0; j < each; ++j) {
    const T off = lane() + j * lanes < width ? value[j] - mean : T(0);
    squares += off * off;
  }
  const T rstd = scaling.reciprocal(cuda::warp_sum(squares));
  if (lane() == 0) {
    means[row] = mean;
    rstds[row] = rstd;
  }
  for (int j = 0; j < each; ++j) {
    const int64_t i = lane() + j * lanes;
    if (i < width) y[i] = gain[i] * ((value[j] - mean) * rstd) + (bias != nullptr ? bias[i] : T(0));
  }
}

/// The same for rows of any width: one block per row, which reads it three times.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    long_rows(const T* x, const T* gain, const T* bias, Scaling scaling, T* y, T* means, T* rstds) {
  __shared__ T scratch[lanes];
  const int64_t row = blockIdx.x, width = scaling.width;
  x += row * width;
  y += row * width;
  T total = 0, squares = 0;
  for (int64_t i = threadIdx.x; i < width; i += cuda::block) total += x[i];
  const T mean = cuda::block_sum(total, scratch) / static_cast<T>(width);
  for (int64_t i = threadIdx.x; i < width; i += cuda::block) squares += (x[i] - mean) * (x[i] - mean);
  const T rstd = scaling.reciprocal(cuda::block_sum(squares, scratch));
  if (threadIdx.x == 0) {
    means[row] = mean;
    rstds[row] = rstd;
  }
  for (int64_t i = threadIdx.x; i < width; i += cuda::block)
    y[i] = gain[i] * ((x[i] - mean) * rstd) + (bias != nullptr ? bias[i] : T(0));
}

/// What the gradient reads.
template <class T>
struct Back {
  const T *x, *gain, *means, *rstds, *dy;
  int64_t rows;
};

/// Rows warp by warp; the block's part of the sums goes to parts[block, 2, width].
template <class T, int each>
__global__ void __launch_bounds__(team* lanes) short_gradients(Back<T> in, Scaling scaling, T* dx, T* parts) {
  __shared__ T shared_sums[2][team][lanes];
  const int64_t width = scaling.width;
  T gains[each], biases[each];
  for (int j = 0; j < each; ++j) gains[j] = biases[j] = T(0);
  for (int64_t row = cuda::grid_warp(); row < in.rows; row += cuda::grid_warps()) {
    const T mean = in.means[row], rstd = in.rstds[row];
    T h[each], g[each], sum_g = 0, sum_gh = 0;
    for (int j = 0; j < each; ++j) {
      const int64_t i = lane() + j * lanes;
      const T up = i < width ? in.dy[row * width + i] : T(0);
      h[j] = i < width ? (in.x[row * width + i] - mean) * rstd : T(0);
      g[j] = i < width ? up * in.gain[i] : T(0);
      sum_g += g[j];
      sum_gh += g[j] * h[j];
      gains[j] += up * h[j];
      biases[j] += up;
    }
    const T shift = cuda::warp_sum(sum_g) / static_cast<T>(width);
    const T k = scaling.mean_product(cuda::warp_sum(sum_gh), rstd);
    for (int j = 0; j < each; ++j) {
      const int64_t i = lane() + j * lanes;
      if (i < width) dx[row * width + i] = rstd * (g[j] - shift - h[j] * k);
    }
  }
  T* to = parts + 2 * width * blockIdx.x;
  const int own = static_cast<int>(threadIdx.x) / lanes;
  for (int j = 0; j < each; ++j) {
    __syncthreads();
    shared_sums[0][own][lane()] = gains[j];
    shared_sums[1][own][lane()] = biases[j];
    __syncthreads();
    const int64_t i = lane() + j * lanes;
    if (own > 1 || i >= width) continue;  // warp 0 adds up the gain, warp 1 the bias
    T total = 0;
    for (int w = 0; w < team; ++w) total += shared_sums[own][w][lane()];
    to[own * width + i] = total;
  }
}

/// dx[row, :] = rstd (g - mean(g) - h k) with g = gain dy and h = (x - mean) rstd: one block per row, which
/// reads it twice.
template <class T>
__global__ void __launch_bounds__(cuda::block) long_gradients(Back<T> in, Scaling scaling, T* dx) {
  __shared__ T scratch[lanes];
  const int64_t row = blockIdx.x, width = scaling.width, first = row * width;
  const T mean = in.means[row], rstd = in.rstds[row];
  T sum_g = 0, sum_gh = 0;
  for (int64_t i = threadIdx.x; i < width; i += cuda::block) {
    const T g = in.dy[first + i] * in.gain[i];
    sum_g += g;
    sum_gh += g * ((in.x[first + i] - mean) * rstd);
  }
  const T shift = cuda::block_sum(sum_g, scratch) / static_cast<T>(width);
  const T k = scaling.mean_product(cuda::block_sum(sum_gh, scratch), rstd);
  for (int64_t i = threadIdx.x; i < width; i += cuda::block)
    dx[first + i] = rstd * (in.dy[first + i] * in.gain[i] - shift - (in.x[first + i] - mean) * rstd * k);
}

/// The same parts where rows are long: a block sums `each` rows of some columns.
template <class T>
__global__ void __launch_bounds__(cuda::block) long_sums(Back<T> in, int64_t each, int64_t width, T* parts) {
  const int64_t i = int64_t{blockIdx.x} * cuda::block + threadIdx.x, part = blockIdx.y;
  if (i >= width) return;
  T gains = 0, biases = 0;
  for (int64_t row = part * each; row < std::min(in.rows, (part + 1) * each); ++row) {
    const T up = in.dy[row * width + i];
    gains += up * ((in.x[row * width + i] - in.means[row]) * in.rstds[row]);
    biases += up;
  }
  parts[2 * part * width + i] = gains;
  parts[(2 * part + 1) * width + i] = biases;
}

/// Adds the parts: eight warps share those of 32 columns, in a fixed order.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    add_parts(const T* parts, int64_t count, int64_t width, T* dgain, T* dbias) {
  constexpr int shares = cuda::block / lanes;
  __shared__ double sums[shares][lanes];
  const int64_t column = int64_t{blockIdx.x} * lanes + lane();  // of gain and bias as one row
  const int own = static_cast<int>(threadIdx.x) / lanes;
  double total = 0;
  for (int64_t part = own; part < count && column < 2 * width; part += shares)
    total += static_cast<double>(parts[2 * part * width + column]);
  sums[own][lane()] = total;
  __syncthreads();
  if (own > 0 || column >= 2 * width) return;
  for (int w = 1; w < shares; ++w) total += sums[w][lane()];
  if (column < width)
    dgain[column] = static_cast<T>(total);
  else if (dbias != nullptr)
    dbias[column - width] = static_cast<T>(total);
}

/// Calls f(numbers of a row that a lane keeps), a constant.
template <class F>
void with_each(int64_t width, F&& f) {
  if (width <= 4 * lanes) return f(std::integral_constant<int, 4>{});
  if (width <= 8 * lanes) return f(std::integral_constant<int, 8>{});
  if (width <= 16 * lanes) return f(std::integral_constant<int, 16>{});
  f(std::integral_constant<int, short_width / lanes>{});
}

}  // namespace

/// y, mean and rstd: one warp per row of up to 1024 numbers, else one block per row.
void LayerNorm::cuda(const LayerNormTensors& t, double epsilon, NormScale scale) {
  if (t.x.size() == 0) return;
  const Scaling scaling{epsilon, scale, t.x.extent(-1)};
  const int64_t rows = t.x.size() / scaling.width;
  visit_float("layer_norm", t.x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const T *from = t.x.data<T>(), *g = t.gain.data<T>(), *b = cuda::pointer<T>(t.bias);
    T *to = t.y.data<T>(), *means = t.mean.data<T>(), *rstds = t.rstd.data<T>();
    if (scaling.width > short_width)
      return cuda::run(long_rows<T>, cuda::blocks(rows), from, g, b, scaling, to, means, rstds);
    with_each(scaling.width, [&](auto each) {
      cuda::run(short_rows<T, decltype(each)::value>, cuda::warps(rows), from, g, b, rows, scaling, to, means,
                rstds);
    });
  });
  Count::add(t.x.size());
}

/// dx, dgain and dbias. For rows of up to 1024 numbers one kernel gives dx and the sums of each block; else
/// one gives dx and another the sums of runs of rows. The sums [count, 2, d] are then added in order.
void LayerNormBack::cuda(const LayerNormBackTensors& t, double epsilon, NormScale scale) {
  const Scaling scaling{epsilon, scale, t.x.extent(-1)};
  const int64_t width = scaling.width, rows = width > 0 ? t.x.size() / width : 0;
  visit_float("layer_norm", t.x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    const Back<T> in{t.x.data<T>(),    t.gain.data<T>(), t.mean.data<T>(),
                     t.rstd.data<T>(), t.dy.data<T>(),   rows};
    T* to = t.dx.data<T>();
    // `count` parts of dgain and dbias: one per block, or where rows are long one per `each` rows.
    const bool is_short = width <= short_width;
    const int64_t wanted = ceil_div(rows, is_short ? 2 * team : 32);
    const int64_t each = ceil_div(rows, std::min(std::max<int64_t>(wanted, 1), max_parts));
    const int64_t count = is_short ? std::min(wanted, max_parts) : (each > 0 ? ceil_div(rows, each) : 0);
    const Tensor parts = empty_like(t.x, Shape{std::max<int64_t>(count, 1), 2, width});
    T* sums = parts.data<T>();
    if (is_short) {
      with_each(width, [&](auto share) {
        cuda::run(short_gradients<T, decltype(share)::value>, cuda::blocks(count, team * lanes), in, scaling,
                  to, sums);
      });
    } else if (rows > 0) {
      cuda::run(long_gradients<T>, cuda::blocks(rows), in, scaling, to);
      const cuda::Grid grid{
          .blocks = dim3(static_cast<unsigned>(ceil_div(width, cuda::block)), static_cast<unsigned>(count)),
          .threads = dim3(cuda::block)};
      cuda::run(long_sums<T>, grid, in, each, width, sums);
    }
    cuda::run(add_parts<T>, cuda::blocks(ceil_div(2 * width, lanes)), sums, count, width, t.dgain.data<T>(),
              cuda::pointer<T>(t.dbias));
  });
  Count::add(t.x.size());
}

}  // namespace heed::kernel
