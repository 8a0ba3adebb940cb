// Rotary position embedding on the CPU, row by row.
#include "heed/core/kernels/attention/rotary.h"

#include "heed/core/kernels/attention/head_rows.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {
namespace {

/// (y_a, y_b) = (x_a cos - x_b sin, x_a sin + x_b cos) for each pair (a, b) of elements of a row. The table
/// has the cosines of all pairs, then their sines, which are multiplied by `sign`.
template <class T>
void rotate_row(const T* x, const T* table, int64_t pairs, RotaryPairs kind, T sign, T* y) {
  const T *cosine = table, *sine = table + pairs;
  const int64_t step = kind == RotaryPairs::halves ? 1 : 2, partner = kind == RotaryPairs::halves ? pairs : 1;
#pragma GCC ivdep
  for (int64_t p = 0; p < pairs; ++p) {
    const T a = x[p * step], b = x[p * step + partner], c = cosine[p], s = sign * sine[p];
    y[p * step] = a * c - b * s;
    y[p * step + partner] = a * s + b * c;
  }
}

/// y[b, h, t, :] = x[b, h, t, :] with pair p of the first n = table.extent(1) elements rotated by angle p of
/// table[t, :]. One task is some rows (b, t, h).
template <class T>
void rotate_rows(const Tensor& x, const Tensor& table, RotaryPairs kind, bool back, const Tensor& y) {
  const HeadView<const T> x_rows(x);
  const HeadView<T> y_rows(y);
  const int64_t H = x.extent(1), length = x.extent(2), d = x.extent(3), num_rotated = table.extent(1);
  const T* angles = table.data<T>();
  const int64_t ld = table.strides()[0];
  parallel_rows(x.extent(0) * length * H, ceil_div(light_grain, std::max<int64_t>(d, 1)),
                [&](int64_t begin, int64_t end) {
                  for (int64_t row = begin; row < end; ++row) {
                    const int64_t b = row / H / length, t = row / H % length, h = row % H;
                    const T* x_row = x_rows.at(b, h, t);
                    T* y_row = y_rows.at(b, h, t);
                    rotate_row(x_row, angles + t * ld, num_rotated / 2, kind, back ? T(-1) : T(1), y_row);
                    std::copy(x_row + num_rotated, x_row + d, y_row + num_rotated);
                  }
                });
  Count::add(3 * x.size());
}

}  // namespace

template <>
void Rotary::cpu<target_isa>(const Tensor& x, const Tensor& table, RotaryPairs pairs, bool back,
                             const Tensor& y) {
  visit_float("rotary", x.dtype(), [&]<class T>(Type<T>) { rotate_rows<T>(x, table, pairs, back, y); });
}

}  // namespace heed::kernel
