// Additive scores on a GPU: lanes are keys. dleft and dright are summed by different kernels, so each tanh is
// computed twice and no two threads add to one number.
#include "heed/core/kernels/attention/additive_score.h"

#include "heed/core/ceil_div.h"
#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/kernels/simd/math.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

constexpr int queries_per_thread = 4;  // they share each element of `right` that a thread reads

/// score[b, h, i, j] = sum_a units[h, a] tanh(left[b, h, i, a] + right[b, h, a, j]). A thread has one key j
/// and four queries i; a block has 256 keys and four queries.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    score_keys(AdditiveExtents x, const T* left, const T* right, const T* units, int64_t groups, T* score) {
  const int64_t tiles = (x.keys + cuda::block - 1) / cuda::block, group = blockIdx.x / tiles;
  const int64_t j = blockIdx.x % tiles * cuda::block + threadIdx.x, head = group / groups;
  const int64_t first = group % groups * queries_per_thread;
  if (j >= x.keys) return;
  const int count = static_cast<int>(std::min<int64_t>(queries_per_thread, x.queries - first));
  const T *weight = units + head % x.heads * x.units, *right_row = right + head * x.units * x.keys + j,
          *left_rows = left + (head * x.queries + first) * x.units;
  T sum[queries_per_thread] = {};
  for (int64_t a = 0; a < x.units; ++a) {
    const T right_unit = right_row[a * x.keys], factor = weight[a];
    for (int i = 0; i < queries_per_thread; ++i) {
      if (i < count) sum[i] += factor * math::tanh(left_rows[i * x.units + a] + right_unit);
    }
  }
  for (int i = 0; i < queries_per_thread; ++i) {
    if (i < count) score[(head * x.queries + first + i) * x.keys + j] = sum[i];
  }
}

/// dright[b, h, a, j] = sum_i dscore_ij units_a (1 - t_ija^2) with t = tanh, by one thread for each unit (b,
/// h, a) and key j.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    back_keys(AdditiveExtents x, const T* left, const T* right, const T* units, const T* dscore, T* dright) {
  const int64_t tiles = (x.keys + cuda::block - 1) / cuda::block, unit = blockIdx.x / tiles;
  const int64_t j = blockIdx.x % tiles * cuda::block + threadIdx.x, head = unit / x.units, a = unit % x.units;
  if (j >= x.keys) return;
  const T factor = units[head % x.heads * x.units + a], right_unit = right[unit * x.keys + j];
  T sum = 0;
  for (int64_t i = 0; i < x.queries; ++i) {
    const int64_t row = head * x.queries + i;
    const T t = math::tanh(left[row * x.units + a] + right_unit);
    sum += factor * dscore[row * x.keys + j] * (1 - t * t);
  }
  dright[unit * x.keys + j] = sum;
}

/// dleft[b, h, i, a] = sum_j dscore_ij units_a (1 - t_ija^2) and parts[b, h, i, a] = sum_j dscore_ij t_ija
/// with t = tanh, by one warp for each query and unit; lanes share the keys.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    back_queries(AdditiveExtents x, const T* left, const T* right, const T* units, const T* dscore, T* dleft,
                 double* parts) {
  const int64_t unit = cuda::grid_warp(), row = unit / x.units, a = unit % x.units, head = row / x.queries;
  if (head >= x.num_heads) return;
  const T *right_row = right + (head * x.units + a) * x.keys, *dscore_row = dscore + row * x.keys;
  const T factor = units[head % x.heads * x.units + a], left_unit = left[unit];
  T dunit = 0, dhidden = 0;
  for (int64_t j = cuda::lane(); j < x.keys; j += cuda::lanes) {
    const T t = math::tanh(left_unit + right_row[j]);
    dunit += dscore_row[j] * t;
    dhidden += factor * dscore_row[j] * (1 - t * t);
  }
  dhidden = cuda::warp_sum(dhidden);
  const double part = cuda::warp_sum(static_cast<double>(dunit));
  if (cuda::lane() != 0) return;
  dleft[unit] = dhidden;
  parts[unit] = part;
}

/// dunits[b, h, a] = sum_i parts[b, h, i, a], by one thread for each unit of a head.
template <class T>
__global__ void __launch_bounds__(cuda::block) add_parts(AdditiveExtents x, const double* parts, T* dunits) {
  const int64_t unit = cuda::global_thread(), head = unit / x.units, a = unit % x.units;
  if (head >= x.num_heads) return;
  double total = 0;
  for (int64_t i = 0; i < x.queries; ++i) total += parts[(head * x.queries + i) * x.units + a];
  dunits[unit] = static_cast<T>(total);
}

}  // namespace

void AdditiveScore::cuda(const Tensor& left, const Tensor& right, const Tensor& units, const Tensor& score) {
  const AdditiveExtents x(left, right);
  visit_float("additive_score", left.dtype(), [&]<class T>(Type<T>) {
    const int64_t groups = ceil_div(x.queries, queries_per_thread);
    cuda::run(score_keys<T>, cuda::block_per_row(ceil_div(x.keys, cuda::block) * groups * x.num_heads), x,
              left.data<T>(), right.data<T>(), units.data<T>(), groups, score.data<T>());
  });
  Count::add(4 * x.num_heads * x.queries * x.units * x.keys);
}

/// Gradients of additive scores in three kernels: dright by a thread for each unit and key; dleft by a warp
/// for each query and unit, which also writes that query's part of dunits; dunits as the sum of the parts [B,
/// H, Tq, A] over queries.
void AdditiveScoreBack::cuda(const AdditiveInputs& in, const Tensor& dscore, const AdditiveInputs& din) {
  const AdditiveExtents x(in.left, in.right);
  const Tensor parts(Shape{in.left.size()}, DType::f64, Device::cuda);
  visit_float("additive_score", in.left.dtype(), [&]<class T>(Type<T>) {
    const T *l = in.left.data<T>(), *r = in.right.data<T>(), *u = in.units.data<T>(),
            *dscore_row = dscore.data<T>();
    cuda::run(back_keys<T>, cuda::block_per_row(ceil_div(x.keys, cuda::block) * x.units * x.num_heads), x, l,
              r, u, dscore_row, din.right.data<T>());
    cuda::run(back_queries<T>, cuda::warp_per_row(in.left.size()), x, l, r, u, dscore_row, din.left.data<T>(),
              parts.data<double>());
    cuda::run(add_parts<T>, cuda::block_per_row(ceil_div(din.units.size(), cuda::block)), x,
              static_cast<const double*>(parts.data<double>()), din.units.data<T>());
  });
  Count::add(10 * x.num_heads * x.units * x.queries * x.keys);
}

}  // namespace heed::kernel
