// Masks on the CPU.
#include "heed/core/kernels/elementwise/mask.h"

#include <algorithm>
#include <cmath>

#include "heed/core/kernels/elementwise/activation_types.h"
#include "heed/core/kernels/simd/simd.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {

/// y[b, 0, i, j] = 0 where j < lengths[b] and, when causal, j <= i + first_query; else -inf. One task is some
/// rows (b, i).
template <>
void DenseMask::cpu<target_isa>(const Tensor& lengths, bool causal, int64_t first_query, const Tensor& y) {
  const int64_t batch = y.extent(0), queries = y.extent(2), keys = y.extent(3);
  const int32_t* length = lengths ? lengths.data<int32_t>() : nullptr;
  visit_float("mask", y.dtype(), [&]<class T>(Type<T>) {
    parallel_rows(batch * queries, light_grain / (keys + 1) + 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        int64_t num_visible = keys;
        if (length != nullptr) num_visible = std::min<int64_t>(num_visible, length[row / queries]);
        if (causal) num_visible = std::min(num_visible, row % queries + first_query + 1);
        T* mask_row = y.data<T>() + row * keys;
        for (int64_t j = 0; j < keys; ++j)
          mask_row[j] = j < num_visible ? T(0) : -std::numeric_limits<T>::infinity();
      }
    });
  });
}

/// y[b, 0, t, 0] = 1 where first + t < lengths[b], else 0.
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

/// y[b, ..., t, :] = x[b, ..., t, :] where first + t < lengths[b]; in other rows NaN and numbers beyond
/// +-max_magnitude become 0. One task is some rows (b, ..., t).
template <>
void FinitePadding::cpu<target_isa>(const Tensor& x, const Tensor& lengths, int64_t first, const Tensor& y) {
  if (x.size() == 0) return;
  const int64_t positions = x.extent(-2), width = x.extent(-1), rows = x.size() / width;
  const int64_t rows_of_sequence = rows / x.extent(0);
  const int32_t* length = lengths.data<int32_t>();
  visit_activation("mask", y.dtype(), [&]<class T>(Type<T>) {
    const auto limit = static_cast<Computed<T>>(max_magnitude);
    parallel_rows(rows, light_grain / width + 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t num_valid = length[row / rows_of_sequence] - first;
        const T* x_row = x.data<T>() + row * width;
        T* y_row = y.data<T>() + row * width;
        if (row % positions < num_valid) {
          std::copy_n(x_row, width, y_row);
        } else {
          for (int64_t i = 0; i < width; ++i) y_row[i] = std::abs(Computed<T>(x_row[i])) <= limit ? x_row[i] : T(0);
        }
      }
    });
  });
}

}  // namespace heed::kernel
