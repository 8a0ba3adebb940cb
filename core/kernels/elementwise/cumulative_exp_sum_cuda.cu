// Running sums of exponentials on a device: a thread for each column of a head.
#include "heed/core/kernels/elementwise/cumulative_exp_sum.h"

#include "heed/core/cuda/device/block.h"
#include "heed/core/cuda/device/view.h"
#include "heed/core/cuda/device/visit.h"
#include "heed/core/kernels/attention/head_view.h"
#include "heed/core/kernels/simd/math.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

/// Extents of a call; columns of all heads are numbered one after the other.
struct Columns {
  int64_t H, length, f, count;
  explicit Columns(const Tensor& x)
      : H(x.extent(1)), length(x.extent(2)), f(x.extent(3)), count(x.extent(0) * x.extent(1) * x.extent(3)) {}
};

/// most_t = max(most_(t-1), x_t) and sum_t = sum_(t-1) exp(most_(t-1) - most_t) + exp(x_t - most_t), by one
/// thread for each column of a head.
template <class T>
__global__ void sum_exponentials(Columns all, HeadView<const T> x, T* most, T* sum) {
  for (int64_t column = cuda::global_thread(); column < all.count; column += cuda::grid_size()) {
    const int64_t head = column / all.f, c = column % all.f;
    const T* in = x.at(head / all.H, head % all.H, 0) + c;
    T *tops = most + head * all.length * all.f + c, *sums = sum + head * all.length * all.f + c;
    T top = T(0), total = T(0);
    for (int64_t t = 0; t < all.length; ++t) {
      const T here = in[t * x.ld], largest = t == 0 || here > top ? here : top;
      total = (t == 0 ? T(0) : total * math::exp(top - largest)) + math::exp(here - largest);
      top = largest;
      tops[t * all.f] = top;
      sums[t * all.f] = total;
    }
  }
}

/// dx_t = r_t exp(x_t - most_t) with r_t = r_(t+1) exp(most_t - most_(t+1)) + dsum_t, by one thread for each
/// column of a head.
template <class T>
__global__ void back_exp_sums(Columns all, HeadView<const T> x, HeadView<const T> dsum, const T* most,
                              T* dx) {
  for (int64_t column = cuda::global_thread(); column < all.count; column += cuda::grid_size()) {
    const int64_t head = column / all.f, c = column % all.f, b = head / all.H, h = head % all.H;
    const T *in = x.at(b, h, 0) + c, *dsum_column = dsum.at(b, h, 0) + c,
            *tops = most + head * all.length * all.f + c;
    T* out = dx + head * all.length * all.f + c;
    T running = T(0), next = T(0);
    for (int64_t t = all.length - 1; t >= 0; --t) {
      const T top = tops[t * all.f];
      running = (t + 1 == all.length ? T(0) : running * math::exp(top - next)) + dsum_column[t * dsum.ld];
      out[t * all.f] = running * math::exp(in[t * x.ld] - top);
      next = top;
    }
  }
}

}  // namespace

void CumulativeExpSum::cuda(const Tensor& x, const Tensor& most, const Tensor& sum) {
  const Columns all(x);
  cuda::visit_real("cumulative_exp_sum", x.dtype(), [&]<class T>(Type<T>) {
    cuda::run(sum_exponentials<T>, cuda::line(all.count, 128), all, HeadView<const T>(x), most.data<T>(),
              sum.data<T>());
  });
  Count::add(2 * x.size());
}

void CumulativeExpSumBack::cuda(const Tensor& x, const Tensor& most, const Tensor& dsum, const Tensor& dx) {
  const Columns all(x);
  cuda::visit_real("cumulative_exp_sum", x.dtype(), [&]<class T>(Type<T>) {
    cuda::run(back_exp_sums<T>, cuda::line(all.count, 128), all, HeadView<const T>(x),
              HeadView<const T>(dsum), static_cast<const T*>(most.data<T>()), dx.data<T>());
  });
  Count::add(2 * x.size());
}

}  // namespace heed::kernel
