// Rotary position embedding on a GPU: one warp per row.
#include "heed/core/kernels/attention/rotary.h"

#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/kernels/attention/head_view.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

/// y[b, h, t, :] = x[b, h, t, :] with pair p of the first 2 `pairs` elements rotated by the angle with
/// cosine angles[t, p] and sine sign * angles[t, pairs + p]. One warp per row; lanes are pairs.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    rotate(HeadView<const T> x, HeadView<T> y, const T* angles, int64_t ld, int64_t heads, int64_t length,
           int64_t num_rows, int64_t d, int64_t pairs, bool halves, T sign) {
  const int64_t row = cuda::grid_warp();
  if (row >= num_rows) return;
  const int64_t h = row % heads, t = row / heads % length, batch = row / heads / length;
  const T *x_row = x.at(batch, h, t), *cosine = angles + t * ld, *sine = cosine + pairs;
  T* y_row = y.at(batch, h, t);
  const int64_t step = halves ? 1 : 2, partner = halves ? pairs : 1;
  for (int64_t p = cuda::lane(); p < pairs; p += cuda::lanes) {
    const T a = x_row[p * step], b = x_row[p * step + partner], cos = cosine[p], sin = sign * sine[p];
    y_row[p * step] = a * cos - b * sin;
    y_row[p * step + partner] = a * sin + b * cos;
  }
  for (int64_t i = 2 * pairs + cuda::lane(); i < d; i += cuda::lanes) y_row[i] = x_row[i];
}

}  // namespace

void Rotary::cuda(const Tensor& x, const Tensor& table, RotaryPairs pairs, bool back, const Tensor& y) {
  visit_float("rotary", x.dtype(), [&]<class T>(Type<T>) {
    const int64_t heads = x.extent(1), length = x.extent(2), rows = x.extent(0) * heads * length;
    cuda::run(rotate<T>, cuda::warp_per_row(rows), HeadView<const T>(x), HeadView<T>(y),
              static_cast<const T*>(table.data<T>()), table.strides()[0], heads, length, rows, x.extent(3),
              table.extent(1) / 2, pairs == RotaryPairs::halves, back ? T(-1) : T(1));
  });
  Count::add(3 * x.size());
}

}  // namespace heed::kernel
