// Turning pairs on the CPU, row by row.
#include "heed/core/kernels/attention/rotary.h"

#include "heed/core/kernels/attention/head_rows.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {
namespace {

template <class T>
void turn_row(const T* x, const T* table, int64_t pairs, RotaryPairs kind, T sign, T* y) {
  const T *cosine = table, *sine = table + pairs;
  const int64_t step = kind == RotaryPairs::halves ? 1 : 2, partner = kind == RotaryPairs::halves ? pairs : 1;
#pragma GCC ivdep
  for (int64_t p = 0; p < pairs; ++p) {
    const T a = x[p * step], b = x[p * step + partner], c = cosine[p], s = sign * sine[p];
    y[p * step] = a * c - b * s;
    y[p * step + partner] = a * s + b * c;
  }
}

/// y[b, h, t, :] = x[b, h, t, :], where pair p of the first n = table.extent(1) elements is turned by angle p
/// of table[t, :]. One task is some rows (b, t, h).
template <class T>
void turn_rows(const Tensor& x, const Tensor& table, RotaryPairs kind, bool back, const Tensor& y) {
  const HeadView<const T> from(x);
  const HeadView<T> to(y);
  const int64_t H = x.extent(1), length = x.extent(2), d = x.extent(3), turned = table.extent(1);
  const T* angles = table.data<T>();
  const int64_t ld = table.strides()[0];
  parallel_rows(x.extent(0) * length * H, ceil_div(light_grain, std::max<int64_t>(d, 1)),
                [&](int64_t begin, int64_t end) {
                  for (int64_t row = begin; row < end; ++row) {
                    const int64_t b = row / H / length, t = row / H % length, h = row % H;
                    const T* in = from.at(b, h, t);
                    T* out = to.at(b, h, t);
                    turn_row(in, angles + t * ld, turned / 2, kind, back ? T(-1) : T(1), out);
                    std::copy(in + turned, in + d, out + turned);
                  }
                });
  Count::add(3 * x.size());
}

}  // namespace

template <>
void Rotary::cpu<here>(const Tensor& x, const Tensor& table, RotaryPairs pairs, bool back, const Tensor& y) {
  visit_float("rotary", x.dtype(),
              [&](auto type) { turn_rows<typename decltype(type)::type>(x, table, pairs, back, y); });
}

}  // namespace heed::kernel
