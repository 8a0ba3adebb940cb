// Additive scores on a GPU: lanes are keys. Each gradient makes its own sums, so each tanh is computed twice
// and nothing is added by two threads.
#include "heed/core/kernels/attention/additive_score.h"

#include "heed/core/ceil_div.h"
#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/kernels/simd/math.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

struct Extent {
  int64_t heads_of_all, heads, queries, units, keys;
  Extent(const Tensor& left, const Tensor& right)
      : heads_of_all(left.extent(0) * left.extent(1)),
        heads(left.extent(1)),
        queries(left.extent(2)),
        units(left.extent(3)),
        keys(right.extent(3)) {}
};

constexpr int queries_together = 4;  ///< of a thread: each number of `right` serves so many

/// A thread has one key and some queries; grid (keys / block, queries / queries_together * heads).
template <class T>
__global__ void __launch_bounds__(cuda::block)
    score_keys(Extent x, const T* left, const T* right, const T* units, int64_t groups, T* score) {
  const int64_t tiles = (x.keys + cuda::block - 1) / cuda::block, piece = blockIdx.x / tiles;
  const int64_t j = blockIdx.x % tiles * cuda::block + threadIdx.x, head = piece / groups;
  const int64_t first = piece % groups * queries_together;
  if (j >= x.keys) return;
  const int count = static_cast<int>(std::min<int64_t>(queries_together, x.queries - first));
  const T *weight = units + head % x.heads * x.units, *right_row = right + head * x.units * x.keys + j,
          *own = left + (head * x.queries + first) * x.units;
  T sum[queries_together] = {};
  for (int64_t a = 0; a < x.units; ++a) {
    const T other = right_row[a * x.keys], factor = weight[a];
    for (int i = 0; i < queries_together; ++i) {
      if (i < count) sum[i] += factor * math::tanh(own[i * x.units + a] + other);
    }
  }
  for (int i = 0; i < queries_together; ++i) {
    if (i < count) score[(head * x.queries + first + i) * x.keys + j] = sum[i];
  }
}

/// dright[b, h, a, j] = sum_i dscore_ij units_a (1 - t_ija^2) with t = tanh, by one thread for each unit and
/// key.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    back_keys(Extent x, const T* left, const T* right, const T* units, const T* dscore, T* dright) {
  const int64_t tiles = (x.keys + cuda::block - 1) / cuda::block, at = blockIdx.x / tiles;
  const int64_t j = blockIdx.x % tiles * cuda::block + threadIdx.x, head = at / x.units, a = at % x.units;
  if (j >= x.keys) return;
  const T factor = units[head % x.heads * x.units + a], other = right[at * x.keys + j];
  T sum = 0;
  for (int64_t i = 0; i < x.queries; ++i) {
    const int64_t row = head * x.queries + i;
    const T t = math::tanh(left[row * x.units + a] + other);
    sum += factor * dscore[row * x.keys + j] * (1 - t * t);
  }
  dright[at * x.keys + j] = sum;
}

/// dleft[b, h, i, a] = sum_j dscore_ij units_a (1 - t_ija^2) and parts[b, h, i, a] = sum_j dscore_ij t_ija
/// with t = tanh, by one warp for each query and unit.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    back_queries(Extent x, const T* left, const T* right, const T* units, const T* dscore, T* dleft,
                 double* parts) {
  const int64_t at = cuda::grid_warp(), row = at / x.units, a = at % x.units, head = row / x.queries;
  if (head >= x.heads_of_all) return;
  const T *right_row = right + (head * x.units + a) * x.keys, *dscore_row = dscore + row * x.keys;
  const T factor = units[head % x.heads * x.units + a], own_left = left[at];
  T dunit = 0, dinner = 0;
  for (int64_t j = cuda::lane(); j < x.keys; j += cuda::lanes) {
    const T t = math::tanh(own_left + right_row[j]);
    dunit += dscore_row[j] * t;
    dinner += factor * dscore_row[j] * (1 - t * t);
  }
  dinner = cuda::warp_sum(dinner);
  const double part = cuda::warp_sum(static_cast<double>(dunit));
  if (cuda::lane() != 0) return;
  dleft[at] = dinner;
  parts[at] = part;
}

/// dunits[b, h, a] = sum_i parts[b, h, i, a], by one thread for each unit of a head.
template <class T>
__global__ void __launch_bounds__(cuda::block) add_parts(Extent x, const double* parts, T* dunits) {
  const int64_t at = cuda::global_thread(), head = at / x.units, a = at % x.units;
  if (head >= x.heads_of_all) return;
  double total = 0;
  for (int64_t i = 0; i < x.queries; ++i) total += parts[(head * x.queries + i) * x.units + a];
  dunits[at] = static_cast<T>(total);
}

}  // namespace

void AdditiveScore::cuda(const Tensor& left, const Tensor& right, const Tensor& units, const Tensor& score) {
  const Extent x(left, right);
  visit_float("additive_score", left.dtype(), [&]<class T>(Type<T>) {
    const int64_t groups = ceil_div(x.queries, queries_together);
    cuda::run(score_keys<T>, cuda::blocks(ceil_div(x.keys, cuda::block) * groups * x.heads_of_all), x,
              left.data<T>(), right.data<T>(), units.data<T>(), groups, score.data<T>());
  });
  Count::add(4 * x.heads_of_all * x.queries * x.units * x.keys);
}

/// Gradients of additive scores in three kernels: dright by a thread for each unit and key; dleft by a warp
/// for each query and unit, which also writes that query's part of dunits; dunits as the sum of the parts [B,
/// H, Tq, A] over queries.
void AdditiveScoreBack::cuda(const AdditiveInputs& in, const Tensor& dscore, const AdditiveInputs& din) {
  const Extent x(in.left, in.right);
  const Tensor parts(Shape{in.left.size()}, DType::f64, Device::cuda);
  visit_float("additive_score", in.left.dtype(), [&]<class T>(Type<T>) {
    const T *l = in.left.data<T>(), *r = in.right.data<T>(), *u = in.units.data<T>(),
            *dscore_row = dscore.data<T>();
    cuda::run(back_keys<T>, cuda::blocks(ceil_div(x.keys, cuda::block) * x.units * x.heads_of_all), x, l, r,
              u, dscore_row, din.right.data<T>());
    cuda::run(back_queries<T>, cuda::warps(in.left.size()), x, l, r, u, dscore_row, din.left.data<T>(),
              parts.data<double>());
    cuda::run(add_parts<T>, cuda::blocks(ceil_div(din.units.size(), cuda::block)), x,
              static_cast<const double*>(parts.data<double>()), din.units.data<T>());
  });
  Count::add(10 * x.heads_of_all * x.units * x.queries * x.keys);
}

}  // namespace heed::kernel
