// Argsort and top-k of rows on a GPU.
#include "heed/core/kernels/content/sort.h"

#include <algorithm>

#include "heed/core/bits.h"
#include "heed/core/cuda/device/row_threads.h"
#include "heed/core/cuda/device/sort.h"
#include "heed/core/cuda/device/top_k.h"
#include "heed/core/operation_count.h"

namespace heed::kernel {
namespace {

/// Levels of a merge sort of n numbers, by which Count estimates comparisons.
int64_t sort_levels(int64_t n) { return bit_width(static_cast<uint64_t>(std::max<int64_t>(n, 1))); }

/// keys[i] = x[i] as an unsigned integer that sorts in the same order. One thread per number.
template <class T, class SortKey>
__global__ void __launch_bounds__(cuda::block) make_sort_keys(const T* x, int64_t count, SortKey* keys) {
  for (int64_t i = cuda::global_thread(); i < count; i += cuda::grid_size()) keys[i] = cuda::ordered(x[i]);
}

/// order[row, :] = indices of keys[row, :] from the least to the greatest, by a stable radix sort.
template <class T>
void argsort_rows(const Tensor& keys, const Tensor& order) {
  using SortKey = decltype(cuda::ordered(T()));
  constexpr int bits_per_byte = 8;
  const int64_t n = keys.extent(-1), rows = n == 0 ? 0 : keys.size() / n;
  const Tensor memory(Shape{keys.size()}, sizeof(SortKey) == 8 ? DType::i64 : DType::i32, Device::cuda);
  auto* const sort_keys = static_cast<SortKey*>(memory.raw());
  cuda::run(make_sort_keys<T, SortKey>, cuda::grid_over(keys.size()), static_cast<const T*>(keys.data<T>()),
            keys.size(), sort_keys);
  cuda::sort_rows(sort_keys, rows, n, bits_per_byte * static_cast<int>(sizeof(SortKey)),
                  order.data<int32_t>());
  Count::add(keys.size() * sort_levels(n));
}

/// which[row, :k] = indices of the k largest of x[row, :n] above -inf, in ascending order, then -1. One block
/// per row.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    choose_largest(const T* x, int64_t n, int64_t k, int32_t* which) {
  __shared__ cuda::TopKScratch shared;
  cuda::choose_largest(x + blockIdx.x * n, n, k, which + blockIdx.x * k, k, shared);
}

}  // namespace

/// order[..., :] = the indices that sort keys[..., :].
void Argsort::cuda(const Tensor& keys, const Tensor& order) {
  if (keys.dtype() == DType::i32) return argsort_rows<int32_t>(keys, order);
  visit_float("argsort", keys.dtype(), [&]<class T>(Type<T>) { argsort_rows<T>(keys, order); });
}

/// which[..., :k] = the indices of the k largest of x[..., :].
void TopK::cuda(const Tensor& x, const Tensor& which) {
  const int64_t n = x.extent(-1), k = which.extent(-1), rows = k == 0 ? 0 : which.size() / k;
  visit_float("largest", x.dtype(), [&]<class T>(Type<T>) {
    cuda::run(choose_largest<T>, cuda::block_per_row(rows), static_cast<const T*>(x.data<T>()), n, k,
              which.data<int32_t>());
  });
  Count::add(x.size() + which.size() * sort_levels(k));
}

}  // namespace heed::kernel
