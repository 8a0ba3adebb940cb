// Cross entropy on a GPU: a warp or a block reads a row of logits once; the maximum that it subtracts grows
// on the way (online softmax).
#include "heed/core/kernels/norm/cross_entropy.h"

#include <algorithm>
#include <cmath>

#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/cuda/runtime/index_error_record.h"
#include "heed/core/kernels/simd/math.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

using cuda::lanes;

constexpr int64_t short_width = 1024;  ///< up to here a warp takes a row

/// Indices and reductions of the `team` threads, a warp or a block, that share a row of logits.
template <class T, int team>
struct RowTeam {
  static __device__ int64_t row() { return team == lanes ? cuda::grid_warp() : int64_t{blockIdx.x}; }
  static __device__ int64_t thread() { return threadIdx.x % team; }
  template <class N>
  static __device__ N sum(N x, N* scratch) {
    if constexpr (team == lanes) return cuda::warp_sum(x);
    return cuda::block_sum(x, scratch);
  }
  static __device__ T max(T x, T* scratch) {
    if constexpr (team == lanes) return cuda::warp_max(x);
    return cuda::block_max(x, minus_infinity<T>, scratch);
  }
};

/// The targets of a call, and its extents and settings.
struct Targets {
  const int32_t* target;  ///< [rows]
  int32_t ignore;
  double smoothing;
  int64_t rows, width;
};

/// lse[row] and costs[row] = lse - (1 - s) logit[target] - s mean(logits), 0 in ignored rows. `team` threads,
/// a warp or a block, read the row once. A target that is no class is noted as an error and gives NaN.
template <class T, int team>
__global__ void __launch_bounds__(cuda::block)
    costs_of(const T* x, Targets targets, cuda::IndexErrorRecord* error, T* lse, double* costs) {
  __shared__ T scratch[lanes];
  __shared__ double double_scratch[lanes];
  using Team = RowTeam<T, team>;
  const int64_t row = Team::row(), width = targets.width;
  if (row >= targets.rows) return;
  const int32_t target = targets.target[row];
  const bool is_class = target >= 0 && target < width;
  if (!is_class || target == targets.ignore) {
    if (Team::thread() != 0) return;
    lse[row] = T(0);
    costs[row] = 0;
    if (target == targets.ignore) return;
    cuda::record_index_error(error, row, target,
                             {.first = 0, .rows = width, .ignored = targets.ignore, .heads = 0, .count = 0});
    lse[row] = static_cast<T>(nan(""));
    costs[row] = nan("");
    return;
  }
  const T* in = x + row * width;
  const auto finite_max = [](T max) { return max == minus_infinity<T> ? T(0) : max; };
  // This thread's largest logit, its sum of exponentials relative to that, and its sum of logits (online
  // softmax).
  T thread_max = minus_infinity<T>, thread_exp_sum = 0, thread_sum = 0;
  for (int64_t i = Team::thread(); i < width; i += team) {
    const T value = in[i];
    if (value > thread_max) {
      thread_exp_sum *= math::exp(thread_max - value);
      thread_max = value;
    }
    thread_exp_sum += math::exp(value - finite_max(thread_max));
    thread_sum += value;
  }
  // The maximum and the sums of the whole row; then lse and the cost.
  const T row_max = Team::max(thread_max, scratch);
  const double rescaled =
      static_cast<double>(thread_exp_sum) * static_cast<double>(math::exp(thread_max - finite_max(row_max)));
  const double exp_sum = Team::sum(rescaled, double_scratch),
               sum = Team::sum(static_cast<double>(thread_sum), double_scratch);
  if (Team::thread() != 0) return;
  const double log_sum = std::log(exp_sum) + static_cast<double>(finite_max(row_max));
  double cost = log_sum - (1 - targets.smoothing) * static_cast<double>(in[target]);
  if (targets.smoothing != 0) cost -= targets.smoothing * sum / static_cast<double>(width);
  lse[row] = static_cast<T>(log_sum);
  costs[row] = cost;
}

/// loss = mean of the costs of counted rows, and their number, by one block.
template <class T>
__global__ void __launch_bounds__(1024) mean_of(const double* costs, Targets targets, T* loss, T* counted) {
  __shared__ double scratch[lanes];
  double total = 0, count = 0;
  for (int64_t row = threadIdx.x; row < targets.rows; row += blockDim.x) {
    total += costs[row];
    count += targets.target[row] == targets.ignore ? 0 : 1;
  }
  total = cuda::block_sum(total, scratch);
  count = cuda::block_sum(count, scratch);
  if (threadIdx.x != 0) return;
  *loss = count > 0 ? static_cast<T>(total / count) : T(0);
  *counted = static_cast<T>(count);
}

/// dx[row, i] = dloss / counted (exp(x[row, i] - lse[row]) - s / V - (1 - s) [i = target]), zeros in ignored
/// rows. `team` threads, a warp or a block, take a row.
template <class T, int team>
__global__ void __launch_bounds__(cuda::block)
    gradients_of(const T* x, Targets targets, const T* lse, const T* counted, const T* dloss, T* dx) {
  using Team = RowTeam<T, team>;
  const int64_t row = Team::row(), width = targets.width;
  if (row >= targets.rows) return;
  const T* in = x + row * width;
  T* out = dx + row * width;
  const int32_t target = targets.target[row];
  if (target == targets.ignore) {
    for (int64_t i = Team::thread(); i < width; i += team) out[i] = T(0);
    return;
  }
  const double count = static_cast<double>(*counted);
  const double dcost = count > 0 ? static_cast<double>(*dloss) / count : 0;
  const T scale = static_cast<T>(dcost);
  const T smoothing_term = static_cast<T>(dcost * targets.smoothing / static_cast<double>(width));
  const T target_term = static_cast<T>(dcost * (1 - targets.smoothing)), log_sum = lse[row];
  for (int64_t i = Team::thread(); i < width; i += team) {
    T dlogit = scale * math::exp(in[i] - log_sum) - smoothing_term;
    if (i == target) dlogit -= target_term;
    out[i] = dlogit;
  }
}

/// A warp for each short row, or a block for each long one.
cuda::Grid rows_grid(const Targets& call) {
  return call.width <= short_width ? cuda::warp_per_row(call.rows) : cuda::block_per_row(call.rows);
}

Targets targets_of(const Tensor& logits, const Tensor& targets, double smoothing, int32_t ignore) {
  return {.target = targets.data<int32_t>(),
          .ignore = ignore,
          .smoothing = smoothing,
          .rows = logits.extent(0),
          .width = logits.extent(1)};
}

}  // namespace

/// lse [N], loss and counted: costs of rows, by a warp each for rows of up to 1024 numbers, else by a block
/// each; then one block adds them.
void CrossEntropy::cuda(const Tensor& logits, const Tensor& targets, double smoothing, int32_t ignore,
                        const Tensor& lse, const Tensor& loss, const Tensor& counted) {
  const Targets call = targets_of(logits, targets, smoothing, ignore);
  const Tensor costs(Shape{std::max<int64_t>(call.rows, 1)}, DType::f64, Device::cuda);
  cuda::IndexErrorRecord* const error = cuda::index_error_record(cuda::IndexOp::cross_entropy);
  visit_float("cross_entropy", logits.dtype(), [&]<class T>(Type<T>) {
    const T* x = logits.data<T>();
    const bool is_short = call.width <= short_width;
    cuda::run(is_short ? costs_of<T, lanes> : costs_of<T, cuda::block>, rows_grid(call), x, call, error,
              lse.data<T>(), costs.data<double>());
    cuda::run(mean_of<T>, cuda::block_per_row(1, 1024), costs.data<double>(), call, loss.data<T>(),
              counted.data<T>());
  });
  Count::add(logits.size());
}

/// dlogits [N, V], by one warp per row of up to 1024 numbers, else by one block per row.
void CrossEntropyBack::cuda(const CrossEntropyBackTensors& t, double smoothing, int32_t ignore) {
  const Targets call = targets_of(t.logits, t.targets, smoothing, ignore);
  visit_float("cross_entropy", t.logits.dtype(), [&]<class T>(Type<T>) {
    const T *x = t.logits.data<T>(), *sums = t.lse.data<T>(), *count = t.counted.data<T>(),
            *dloss = t.dloss.data<T>();
    const bool is_short = call.width <= short_width;
    cuda::run(is_short ? gradients_of<T, lanes> : gradients_of<T, cuda::block>, rows_grid(call), x, call,
              sums, count, dloss, t.dlogits.data<T>());
  });
  Count::add(t.logits.size());
}

}  // namespace heed::kernel
