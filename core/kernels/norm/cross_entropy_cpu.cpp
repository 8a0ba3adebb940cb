// Cross entropy on the CPU.
#include "heed/core/kernels/norm/cross_entropy.h"

#include <algorithm>
#include <cmath>

#include "heed/core/kernels/content/index_errors.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {
namespace {

constexpr int64_t block = 1024;  ///< exponentials that are added in T; blocks are added in double
constexpr int64_t exp_grain = light_grain / 4;  ///< numbers of a task: exp costs about four light operations

struct RowSums {
  double log_sum_exp;
  double sum;  ///< sum of the row itself; 0 unless asked for
};

/// The log-sum-exp of a row, and its sum if `needs_sum`, in one pass: the maximum that is subtracted before
/// exp is updated block by block (online softmax). It is 0 while all numbers are -inf.
template <class T>
RowSums row_sums(const T* x, int64_t width, bool needs_sum) {
  T powers[block], row_max = minus_infinity<T>;
  const auto finite_max = [&] { return row_max == minus_infinity<T> ? T(0) : row_max; };
  double exp_sum = 0, sum = 0;
  for (int64_t begin = 0; begin < width; begin += block) {
    const T* block_x = x + begin;
    const int64_t count = std::min(block, width - begin);
    const T block_max = lanes::largest(block_x, count);
    if (block_max > row_max) {
      exp_sum *= std::exp(static_cast<double>(row_max) - static_cast<double>(block_max));
      row_max = block_max;
    }
    const T shift = finite_max();
    for (int64_t i = 0; i < count; ++i) powers[i] = math::exp(block_x[i] - shift);
    exp_sum += static_cast<double>(lanes::sum(powers, count));
    if (needs_sum) sum += static_cast<double>(lanes::sum(block_x, count));
  }
  return {.log_sum_exp = std::log(exp_sum) + static_cast<double>(finite_max()), .sum = sum};
}

/// Refuses a target that is neither a class nor `ignore`.
void check_targets(const Tensor& targets, int64_t width, int32_t ignore) {
  const int32_t* target = targets.data<int32_t>();
  for (int64_t row = 0; row < targets.size(); ++row) {
    if (target[row] == ignore || (target[row] >= 0 && target[row] < width)) continue;
    refuse_target(target[row], row, width, ignore);
  }
}

}  // namespace

/// lse [N], loss = mean over counted rows of lse - (1 - s) logit[target] - s mean(logits), and their number.
/// One task is some rows; their costs are then added in order.
template <>
void CrossEntropy::cpu<target_isa>(const Tensor& logits, const Tensor& targets, double smoothing,
                                   int32_t ignore, const Tensor& lse, const Tensor& loss,
                                   const Tensor& counted) {
  const int64_t rows = logits.extent(0), width = logits.extent(1);
  check_targets(targets, width, ignore);
  const int32_t* target = targets.data<int32_t>();
  const Tensor costs(Shape{rows}, DType::f64);
  double* cost = costs.data<double>();
  visit_float("cross_entropy", logits.dtype(), [&]<class T>(Type<T>) {
    const T* x = logits.data<T>();
    T* lses = lse.data<T>();
    parallel_rows(rows, exp_grain / std::max<int64_t>(width, 1), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        cost[row] = 0;
        lses[row] = T(0);
        if (target[row] == ignore) continue;
        const T* in = x + row * width;
        const RowSums sums = row_sums(in, width, smoothing != 0);
        lses[row] = static_cast<T>(sums.log_sum_exp);
        cost[row] = sums.log_sum_exp - (1 - smoothing) * static_cast<double>(in[target[row]]);
        if (smoothing != 0) cost[row] -= smoothing * sums.sum / static_cast<double>(width);
      }
    });
    // The mean of the costs, added in the order of rows.
    double total = 0;
    int64_t count = 0;
    for (int64_t row = 0; row < rows; ++row) {
      total += cost[row];
      count += target[row] == ignore ? 0 : 1;
    }
    *loss.data<T>() = count > 0 ? static_cast<T>(total / static_cast<double>(count)) : T(0);
    *counted.data<T>() = static_cast<T>(count);
  });
  Count::add(logits.size());
}

/// dlogits[n, i] = dloss / counted (exp(logit[n, i] - lse[n]) - s / V - (1 - s) [i = target]), zeros in
/// ignored rows. One task is some rows.
template <>
void CrossEntropyBack::cpu<target_isa>(const CrossEntropyBackTensors& t, double smoothing, int32_t ignore) {
  const int64_t rows = t.logits.extent(0), width = t.logits.extent(1);
  const int32_t* target = t.targets.data<int32_t>();
  visit_float("cross_entropy", t.logits.dtype(), [&]<class T>(Type<T>) {
    const T* x = t.logits.data<T>();
    const T* lses = t.lse.data<T>();
    T* dx = t.dlogits.data<T>();
    const double count = static_cast<double>(*t.counted.data<T>());
    const double dcost = count > 0 ? static_cast<double>(*t.dloss.data<T>()) / count : 0;
    const T scale = static_cast<T>(dcost);
    const T smoothing_term = static_cast<T>(dcost * smoothing / static_cast<double>(width));
    const T target_term = static_cast<T>(dcost * (1 - smoothing));
    parallel_rows(rows, exp_grain / std::max<int64_t>(width, 1), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* in = x + row * width;
        T* out = dx + row * width;
        if (target[row] == ignore) {
          std::fill_n(out, width, T(0));
          continue;
        }
        const T log_sum = lses[row];
#pragma GCC ivdep
        for (int64_t i = 0; i < width; ++i) out[i] = scale * math::exp(in[i] - log_sum) - smoothing_term;
        out[target[row]] -= target_term;
      }
    });
  });
  Count::add(t.logits.size());
}

}  // namespace heed::kernel
