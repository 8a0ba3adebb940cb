// Appends rows in place, and joins weights of steps into a map.
#include "heed/attention/support/growing_rows.h"

#include <algorithm>

#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/launch.h"

namespace heed {

void GrowingRows::reserve(int64_t batch, int64_t w, int64_t more, const Tensor& like_this) {
  const int64_t n = rows ? rows.extent(1) : 0;
  if (rows && rows.storage() == room_.storage() && room_.extent(1) >= n + more) return;
  // When rows are reserved one by one, the capacity doubles.
  const int64_t wanted = more == 1 ? std::max<int64_t>(16, 2 * n) : n + more;
  room_ = Tensor::zeros(Shape{batch, wanted, w}, like_this.dtype(), like_this.device());
  const Tensor copied = view::slice(room_, 1, 0, n);
  if (n > 0) launch<kernel::Copy>(room_.device(), rows.detach(), copied);
  rows = n > 0 ? record("rows", copied, {&rows}, [](const Tensor& dy) -> Gradients { return {dy}; }) : copied;
}

void GrowingRows::add(const Tensor& row) {
  const int64_t n = rows.extent(1);
  launch<kernel::Copy>(room_.device(), row.detach(), view::slice(room_, 1, n, n + 1));
  rows = record("rows", view::slice(room_, 1, 0, n + 1), {&rows, &row}, [n](const Tensor& dy) -> Gradients {
    return {view::slice(dy, 1, 0, n), view::slice(dy, 1, n, n + 1)};
  });
}

Tensor map_of_growing(const std::vector<Tensor>& rows, int64_t keys) {
  const auto steps = static_cast<int64_t>(rows.size());
  const Tensor& last = rows.back();
  const Tensor map =
      Tensor::zeros(Shape{last.extent(0), last.extent(1), steps, keys}, last.dtype(), last.device());
  for (int64_t i = 0; i < steps; ++i) {
    const Tensor& row = rows[static_cast<size_t>(i)];
    const int64_t end = keys - steps + i, first = end - row.extent(3);
    launch<kernel::Copy>(map.device(), row, view::slice(view::slice(map, 2, i, i + 1), 3, first, end));
  }
  return map;
}

}  // namespace heed
