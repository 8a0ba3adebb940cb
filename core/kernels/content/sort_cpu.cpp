// Argsort and top-k of rows on the CPU.
#include "heed/core/kernels/content/sort.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <vector>

#include "heed/core/kernels/simd/simd.h"
#include "heed/core/operation_count.h"
#include "heed/core/parallel/thread_pool.h"

namespace heed::kernel {
namespace {

/// Levels of a merge sort of n numbers, by which Count estimates comparisons.
int64_t sort_levels(int64_t n) { return std::bit_width(static_cast<uint64_t>(std::max<int64_t>(n, 1))); }

/// a < b, with NaN after all numbers.
template <class T>
bool sorts_before(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return a < b || (std::isnan(b) && !std::isnan(a));
  return a < b;
}

/// order[row, :] = indices of keys[row, :] from the least to the greatest, by a stable sort. One task is some
/// rows.
template <class T>
void argsort_rows(const Tensor& keys, const Tensor& order) {
  const int64_t n = keys.extent(-1);
  const int64_t rows = n == 0 ? 0 : keys.size() / n;
  parallel_rows(rows, light_grain / std::max<int64_t>(n * sort_levels(n), 1),
                [&](int64_t begin, int64_t end) {
                  for (int64_t row = begin; row < end; ++row) {
                    const T* row_keys = keys.data<T>() + row * n;
                    int32_t* row_order = order.data<int32_t>() + row * n;
                    std::iota(row_order, row_order + n, 0);
                    std::stable_sort(row_order, row_order + n, [row_keys](int32_t a, int32_t b) {
                      return sorts_before(row_keys[a], row_keys[b]);
                    });
                  }
                });
  Count::add(keys.size() * sort_levels(n));
}

/// which[row, :k] = indices of the k largest of x[row, :n] above -inf, in ascending order, then -1. One task
/// is some rows.
template <class T>
void choose_largest(const Tensor& x, const Tensor& which) {
  const int64_t n = x.extent(-1), k = which.extent(-1);
  const int64_t rows = k == 0 ? 0 : which.size() / k;
  parallel_rows(rows, light_grain / std::max<int64_t>(n, 1), [&](int64_t begin, int64_t end) {
    std::vector<int32_t> chosen;
    for (int64_t row = begin; row < end; ++row) {
      const T* x_row = x.data<T>() + row * n;
      int32_t* which_row = which.data<int32_t>() + row * k;
      chosen.clear();
      for (int64_t i = 0; i < n; ++i) {
        if (x_row[i] > minus_infinity<T>) chosen.push_back(static_cast<int32_t>(i));
      }
      if (std::ssize(chosen) > k) {
        std::nth_element(chosen.begin(), chosen.begin() + k, chosen.end(), [x_row](int32_t a, int32_t b) {
          return x_row[a] > x_row[b] || (x_row[a] == x_row[b] && a < b);
        });
        chosen.resize(static_cast<size_t>(k));
        std::sort(chosen.begin(), chosen.end());
      }
      std::fill(std::copy(chosen.begin(), chosen.end(), which_row), which_row + k, -1);
    }
  });
  Count::add(x.size() + which.size() * sort_levels(k));
}

}  // namespace

/// order[..., :] = the indices that sort keys[..., :].
template <>
void Argsort::cpu<target_isa>(const Tensor& keys, const Tensor& order) {
  if (keys.dtype() == DType::i32) return argsort_rows<int32_t>(keys, order);
  visit_float("argsort", keys.dtype(), [&]<class T>(Type<T>) { argsort_rows<T>(keys, order); });
}

/// which[..., :k] = the indices of the k largest of x[..., :].
template <>
void TopK::cpu<target_isa>(const Tensor& x, const Tensor& which) {
  visit_float("largest", x.dtype(), [&]<class T>(Type<T>) { choose_largest<T>(x, which); });
}

}  // namespace heed::kernel
