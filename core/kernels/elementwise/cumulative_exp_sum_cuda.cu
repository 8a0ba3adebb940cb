// Cumulative sums of exponentials on a GPU: one thread for each column of a head.
#include "heed/core/kernels/elementwise/cumulative_exp_sum.h"

#include "heed/core/cuda/device/block.h"
#include "heed/core/cuda/device/strided_offsets.h"
#include "heed/core/kernels/attention/head_view.h"
#include "heed/core/kernels/simd/math.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

constexpr int threads = 128;  ///< per block: a thread runs long, and there are few of them

/// Extents of a call. The f columns of all heads are numbered one after the other.
struct Columns {
  int64_t H, length, f;
  int64_t count;  ///< columns of all heads
  explicit Columns(const Tensor& x)
      : H(x.extent(1)), length(x.extent(2)), f(x.extent(3)), count(x.extent(0) * x.extent(1) * x.extent(3)) {}
};

/// max_t = max(max_(t-1), x_t) and sum_t = sum_(t-1) exp(max_(t-1) - max_t) + exp(x_t - max_t), by one
/// thread for each column of a head.
template <class T>
__global__ void sum_exponentials(Columns all, HeadView<const T> x, T* max, T* sum) {
  for (int64_t column = cuda::global_thread(); column < all.count; column += cuda::grid_size()) {
    const int64_t head = column / all.f, c = column % all.f;
    const T* input = x.at(head / all.H, head % all.H, 0) + c;
    T *max_column = max + head * all.length * all.f + c, *sum_column = sum + head * all.length * all.f + c;
    T running_max = T(0), running_sum = T(0);
    for (int64_t t = 0; t < all.length; ++t) {
      const T x_t = input[t * x.ld], new_max = t == 0 || x_t > running_max ? x_t : running_max;
      running_sum =
          (t == 0 ? T(0) : running_sum * math::exp(running_max - new_max)) + math::exp(x_t - new_max);
      running_max = new_max;
      max_column[t * all.f] = running_max;
      sum_column[t * all.f] = running_sum;
    }
  }
}

/// dx_t = r_t exp(x_t - max_t) with r_t = r_(t+1) exp(max_t - max_(t+1)) + dsum_t, by one thread for each
/// column of a head.
template <class T>
__global__ void back_exp_sums(Columns all, HeadView<const T> x, HeadView<const T> dsum, const T* max, T* dx) {
  for (int64_t column = cuda::global_thread(); column < all.count; column += cuda::grid_size()) {
    const int64_t head = column / all.f, c = column % all.f, b = head / all.H, h = head % all.H;
    const T *input = x.at(b, h, 0) + c, *dsum_column = dsum.at(b, h, 0) + c,
            *max_column = max + head * all.length * all.f + c;
    T* dx_column = dx + head * all.length * all.f + c;
    T r = T(0), next_max = T(0);
    for (int64_t t = all.length - 1; t >= 0; --t) {
      const T max_t = max_column[t * all.f];
      r = (t + 1 == all.length ? T(0) : r * math::exp(max_t - next_max)) + dsum_column[t * dsum.ld];
      dx_column[t * all.f] = r * math::exp(input[t * x.ld] - max_t);
      next_max = max_t;
    }
  }
}

}  // namespace

/// Computes max and sum of every column.
void CumulativeExpSum::cuda(const Tensor& x, const Tensor& max, const Tensor& sum) {
  const Columns all(x);
  visit_float("cumulative_exp_sum", x.dtype(), [&]<class T>(Type<T>) {
    cuda::run(sum_exponentials<T>, cuda::grid_over(all.count, threads), all, HeadView<const T>(x),
              max.data<T>(), sum.data<T>());
  });
  Count::add(2 * x.size());
}

/// Computes dx of every column.
void CumulativeExpSumBack::cuda(const Tensor& x, const Tensor& max, const Tensor& dsum, const Tensor& dx) {
  const Columns all(x);
  visit_float("cumulative_exp_sum", x.dtype(), [&]<class T>(Type<T>) {
    cuda::run(back_exp_sums<T>, cuda::grid_over(all.count, threads), all, HeadView<const T>(x),
              HeadView<const T>(dsum), static_cast<const T*>(max.data<T>()), dx.data<T>());
  });
  Count::add(2 * x.size());
}

}  // namespace heed::kernel
