// The index of the largest number of a row, by a warp.
#pragma once

#include "heed/core/cuda/device/row_threads.h"

namespace heed::cuda {

/// Index of the largest of value_of(0), ..., value_of(n - 1), the first of equals; n where n is 0. Lanes take
/// every 32nd number; every lane of the warp gets the result.
template <class T, class F>
__device__ int64_t warp_argmax(int64_t n, F value_of) {
  T max_value = minus_infinity<T>;
  int64_t index = n;
  for (int64_t i = lane(); i < n; i += lanes) {
    const T value = value_of(i);
    if (index < n && !(value > max_value)) continue;
    max_value = value;
    index = i;
  }
  for (int distance = lanes / 2; distance > 0; distance /= 2) {
    const T other = __shfl_xor_sync(all_lanes, max_value, distance);
    const int64_t other_index = __shfl_xor_sync(all_lanes, index, distance);
    if (other > max_value || (other == max_value && other_index < index)) {
      max_value = other;
      index = other_index;
    }
  }
  return index;
}

}  // namespace heed::cuda
