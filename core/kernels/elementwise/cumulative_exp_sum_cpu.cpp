// Running sums of exponentials on the CPU: a head at a time, its columns side by side.
#include "heed/core/kernels/elementwise/cumulative_exp_sum.h"

#include <vector>

#include "heed/core/kernels/attention/head_rows.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {
namespace {

int64_t heads_of_piece(const Tensor& x) {
  constexpr int64_t flops_each = 32;  // two exponentials, mostly
  return std::max<int64_t>(1,
                           flops_per_task / (flops_each * std::max<int64_t>(1, x.extent(2) * x.extent(3))));
}

/// most_t = max(most_(t-1), x_t) and sum_t = sum_(t-1) exp(most_(t-1) - most_t) + exp(x_t - most_t) for each
/// column of x [B, H, T, f]. One task is some heads (b, h), whose positions follow one another; lanes are
/// columns.
template <class T>
void forward(const Tensor& x, const Tensor& most, const Tensor& sum) {
  const HeadView<const T> from(x);
  const int64_t H = x.extent(1), length = x.extent(2), f = x.extent(3);
  parallel_rows(x.extent(0) * H, heads_of_piece(x), [&](int64_t begin, int64_t end) {
    for (int64_t head = begin; head < end; ++head) {
      const T* in = from.at(head / H, head % H, 0);
      T *top = most.data<T>() + head * length * f, *total = sum.data<T>() + head * length * f;
      for (int64_t c = 0; length > 0 && c < f; ++c) {
        top[c] = in[c];
        total[c] = T(1);
      }
      for (int64_t t = 1; t < length; ++t) {
        const T *row = in + t * from.ld, *top_before = top, *before = total;
        top += f;
        total += f;
#pragma GCC ivdep
        for (int64_t c = 0; c < f; ++c) {
          const T largest = row[c] > top_before[c] ? row[c] : top_before[c];
          total[c] = before[c] * math::exp(top_before[c] - largest) + math::exp(row[c] - largest);
          top[c] = largest;
        }
      }
    }
  });
  Count::add(2 * x.size());
}

/// dx_t = r_t exp(x_t - most_t) with r_t = r_(t+1) exp(most_t - most_(t+1)) + dsum_t, column by column. One
/// task is some heads (b, h), from the last position to the first; lanes are columns.
template <class T>
void backward(const Tensor& x, const Tensor& most, const Tensor& dsum, const Tensor& dx) {
  const HeadView<const T> from(x), dsums(dsum);
  const int64_t H = x.extent(1), length = x.extent(2), f = x.extent(3);
  parallel_rows(x.extent(0) * H, heads_of_piece(x), [&](int64_t begin, int64_t end) {
    std::vector<T> later(static_cast<size_t>(f));  // what row t and those after it make of exp(-most_t)
    T* running = later.data();
    for (int64_t head = begin; head < end; ++head) {
      std::fill(later.begin(), later.end(), T(0));
      const T *in = from.at(head / H, head % H, 0), *dsum_column = dsums.at(head / H, head % H, 0);
      const T* top = most.data<T>() + head * length * f;
      T* to = dx.data<T>() + head * length * f;
      for (int64_t t = length - 1; t >= 0; --t) {
        const T *here_top = top + t * f, *next_top = t + 1 < length ? here_top + f : here_top;
        const T *row = in + t * from.ld, *ds = dsum_column + t * dsums.ld;
        T* out = to + t * f;
#pragma GCC ivdep
        for (int64_t c = 0; c < f; ++c) {
          running[c] = running[c] * math::exp(here_top[c] - next_top[c]) + ds[c];
          out[c] = running[c] * math::exp(row[c] - here_top[c]);
        }
      }
    }
  });
  Count::add(2 * x.size());
}

}  // namespace

template <>
void CumulativeExpSum::cpu<here>(const Tensor& x, const Tensor& most, const Tensor& sum) {
  visit_float("cumulative_exp_sum", x.dtype(),
              [&](auto type) { forward<typename decltype(type)::type>(x, most, sum); });
}

template <>
void CumulativeExpSumBack::cpu<here>(const Tensor& x, const Tensor& most, const Tensor& dsum,
                                     const Tensor& dx) {
  visit_float("cumulative_exp_sum", x.dtype(),
              [&](auto type) { backward<typename decltype(type)::type>(x, most, dsum, dx); });
}

}  // namespace heed::kernel
