// Masks on the CPU.
#include <algorithm>
#include <cmath>

#include "heed/core/kernels/elementwise/mask.h"
#include "heed/core/parallel/thread_pool.h"

#include "heed/core/kernels/simd/simd.h"

namespace heed::kernel {

/// y[b, 0, i, j] = 0 where j < lengths[b] and, when causal, j <= i + first_query; else -inf. One task is some
/// rows (b, i).
template <>
void DenseMask::cpu<target_isa>(const Tensor& lengths, bool causal, int64_t first_query, const Tensor& y) {
  const int64_t batch = y.extent(0), queries = y.extent(2), keys = y.extent(3);
  const int32_t* length = lengths ? lengths.data<int32_t>() : nullptr;
  visit_float("mask", y.dtype(), [&]<class T>(Type<T>) {
    T* out = y.data<T>();
    parallel_rows(batch * queries, light_grain / (keys + 1) + 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        int64_t visible = keys;
        if (length != nullptr) visible = std::min<int64_t>(visible, length[row / queries]);
        if (causal) visible = std::min(visible, row % queries + first_query + 1);
        T* to = out + row * keys;
        for (int64_t j = 0; j < keys; ++j) to[j] = j < visible ? T(0) : minus_infinity<T>;
      }
    });
  });
}

template <>
void KeptRows::cpu<target_isa>(const Tensor& lengths, int64_t first, const Tensor& y) {
  const int64_t batch = y.extent(0), rows = y.extent(2);
  const int32_t* length = lengths.data<int32_t>();
  visit_float("mask", y.dtype(), [&]<class T>(Type<T>) {
    T* out = y.data<T>();
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t t = 0; t < rows; ++t) out[b * rows + t] = first + t < length[b] ? T(1) : T(0);
    }
  });
}

/// y[row] = x[row] where row % T + first < lengths[b]; in other rows NaN and numbers beyond +-max_magnitude
/// become 0. One task is some rows (b, ..., t).
template <>
void FinitePadding::cpu<target_isa>(const Tensor& x, const Tensor& lengths, int64_t first, const Tensor& y) {
  if (x.size() == 0) return;
  const int64_t length_of_x = x.extent(-2), width = x.extent(-1), rows = x.size() / width;
  const int64_t rows_of_sequence = rows / x.extent(0);
  const int32_t* length = lengths.data<int32_t>();
  visit_float("mask", y.dtype(), [&]<class T>(Type<T>) {
    const T *from = x.data<T>(), limit = static_cast<T>(max_magnitude);
    T* to = y.data<T>();
    parallel_rows(rows, light_grain / width + 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t num_valid = length[row / rows_of_sequence] - first;
        const T* in = from + row * width;
        T* out = to + row * width;
        if (row % length_of_x < num_valid) {
          std::copy_n(in, width, out);
        } else {
          for (int64_t i = 0; i < width; ++i) out[i] = std::abs(in[i]) <= limit ? in[i] : T(0);
        }
      }
    });
  });
}

}  // namespace heed::kernel
