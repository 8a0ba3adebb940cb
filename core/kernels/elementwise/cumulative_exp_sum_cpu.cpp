// Cumulative sums of exponentials on the CPU: vector lanes are the columns of a head.
#include "heed/core/kernels/elementwise/cumulative_exp_sum.h"

#include <vector>

#include "heed/core/kernels/attention/head_rows.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {
namespace {

/// Number of heads of x [B, H, T, f] that make a task worth giving to a thread.
int64_t heads_per_task(const Tensor& x) {
  constexpr int64_t flops_per_element = 32;  // mostly for two exponentials
  return std::max<int64_t>(
      1, flops_per_task / (flops_per_element * std::max<int64_t>(1, x.extent(2) * x.extent(3))));
}

/// max_t = max(max_(t-1), x_t) and sum_t = sum_(t-1) exp(max_(t-1) - max_t) + exp(x_t - max_t) for each
/// column of x [B, H, T, f]. One task is some heads (b, h), whose positions follow one another; lanes are
/// columns.
template <class T>
void forward(const Tensor& x, const Tensor& max, const Tensor& sum) {
  const HeadView<const T> inputs(x);
  const int64_t H = x.extent(1), length = x.extent(2), f = x.extent(3);
  parallel_rows(x.extent(0) * H, heads_per_task(x), [&](int64_t begin, int64_t end) {
    for (int64_t head = begin; head < end; ++head) {
      const T* input = inputs.at(head / H, head % H, 0);
      T *row_max = max.data<T>() + head * length * f, *row_sum = sum.data<T>() + head * length * f;
      for (int64_t c = 0; length > 0 && c < f; ++c) {
        row_max[c] = input[c];
        row_sum[c] = T(1);
      }
      for (int64_t t = 1; t < length; ++t) {
        const T *row = input + t * inputs.ld, *last_max = row_max, *last_sum = row_sum;
        row_max += f;
        row_sum += f;
#pragma GCC ivdep
        for (int64_t c = 0; c < f; ++c) {
          const T new_max = row[c] > last_max[c] ? row[c] : last_max[c];
          row_sum[c] = last_sum[c] * math::exp(last_max[c] - new_max) + math::exp(row[c] - new_max);
          row_max[c] = new_max;
        }
      }
    }
  });
  Count::add(2 * x.size());
}

/// dx_t = r_t exp(x_t - max_t) with r_t = r_(t+1) exp(max_t - max_(t+1)) + dsum_t, column by column. One
/// task is some heads (b, h), from the last position to the first; lanes are columns.
template <class T>
void backward(const Tensor& x, const Tensor& max, const Tensor& dsum, const Tensor& dx) {
  const HeadView<const T> inputs(x), dsums(dsum);
  const int64_t H = x.extent(1), length = x.extent(2), f = x.extent(3);
  parallel_rows(x.extent(0) * H, heads_per_task(x), [&](int64_t begin, int64_t end) {
    std::vector<T> r_row(static_cast<size_t>(f));
    T* r = r_row.data();
    for (int64_t head = begin; head < end; ++head) {
      std::fill_n(r, f, T(0));
      const T *input = inputs.at(head / H, head % H, 0), *dsum_rows = dsums.at(head / H, head % H, 0);
      const T* max_rows = max.data<T>() + head * length * f;
      T* dx_rows = dx.data<T>() + head * length * f;
      for (int64_t t = length - 1; t >= 0; --t) {
        const T *row_max = max_rows + t * f, *next_max = t + 1 < length ? row_max + f : row_max;
        const T *row = input + t * inputs.ld, *dsum_row = dsum_rows + t * dsums.ld;
        T* dx_row = dx_rows + t * f;
#pragma GCC ivdep
        for (int64_t c = 0; c < f; ++c) {
          r[c] = r[c] * math::exp(row_max[c] - next_max[c]) + dsum_row[c];
          dx_row[c] = r[c] * math::exp(row[c] - row_max[c]);
        }
      }
    }
  });
  Count::add(2 * x.size());
}

}  // namespace

/// Computes max and sum of every column.
template <>
void CumulativeExpSum::cpu<target_isa>(const Tensor& x, const Tensor& max, const Tensor& sum) {
  visit_float("cumulative_exp_sum", x.dtype(), [&]<class T>(Type<T>) { forward<T>(x, max, sum); });
}

/// Computes dx of every column.
template <>
void CumulativeExpSumBack::cpu<target_isa>(const Tensor& x, const Tensor& max, const Tensor& dsum,
                                           const Tensor& dx) {
  visit_float("cumulative_exp_sum", x.dtype(), [&]<class T>(Type<T>) { backward<T>(x, max, dsum, dx); });
}

}  // namespace heed::kernel
