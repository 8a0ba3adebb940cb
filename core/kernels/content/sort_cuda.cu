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

/// Levels of a sort of n numbers, for the count of operations.
int64_t levels(int64_t n) { return bit_width(static_cast<uint64_t>(std::max<int64_t>(n, 1))); }

/// keys[i] = x[i] as an unsigned integer of the same order. One thread per number.
template <class T, class Key>
__global__ void __launch_bounds__(cuda::block) make_sort_keys(const T* x, int64_t count, Key* keys) {
  for (int64_t i = cuda::global_thread(); i < count; i += cuda::grid_size()) keys[i] = cuda::ordered(x[i]);
}

template <class T>
void sort_rows(const Tensor& keys, const Tensor& order) {
  using Key = decltype(cuda::ordered(T()));
  const int64_t n = keys.extent(-1), rows = n == 0 ? 0 : keys.size() / n;
  const Tensor as_keys(Shape{keys.size()}, sizeof(Key) == 8 ? DType::i64 : DType::i32, Device::cuda);
  Key* const key = static_cast<Key*>(as_keys.raw());
  cuda::run(make_sort_keys<T, Key>, cuda::grid_over(keys.size()), static_cast<const T*>(keys.data<T>()),
            keys.size(), key);
  cuda::sort_rows(key, rows, n, 8 * static_cast<int>(sizeof(Key)), order.data<int32_t>());
  Count::add(keys.size() * levels(n));
}

/// which[row, :k] = indices of the k largest of x[row, :n] in ascending order, then -1. One block per row.
template <class T>
__global__ void __launch_bounds__(cuda::block) choose(const T* x, int64_t n, int64_t k, int32_t* which) {
  __shared__ cuda::TopKScratch shared;
  cuda::choose_largest(x + blockIdx.x * n, n, k, which + blockIdx.x * k, k, shared);
}

}  // namespace

void Argsort::cuda(const Tensor& keys, const Tensor& order) {
  if (keys.dtype() == DType::i32) return sort_rows<int32_t>(keys, order);
  visit_float("argsort", keys.dtype(),
              [&](auto type) { sort_rows<typename decltype(type)::type>(keys, order); });
}

void TopK::cuda(const Tensor& x, const Tensor& which) {
  const int64_t n = x.extent(-1), k = which.extent(-1), rows = k == 0 ? 0 : which.size() / k;
  visit_float("largest", x.dtype(), [&]<class T>(Type<T>) {
    cuda::run(choose<T>, cuda::block_per_row(rows), static_cast<const T*>(x.data<T>()), n, k,
              which.data<int32_t>());
  });
  Count::add(x.size() + which.size() * levels(k));
}

}  // namespace heed::kernel
