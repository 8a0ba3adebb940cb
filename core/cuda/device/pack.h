// Packs: consecutive numbers that one instruction loads or stores.
#pragma once

#include <cstdint>

#include "heed/core/host_device.h"

namespace heed::cuda {

/// n consecutive numbers, aligned to their size or to 16 bytes, so that up to 16 bytes are one load.
template <class T, int n>
struct alignas(sizeof(T) * n < 16 ? sizeof(T) * n : 16) Pack {
  T x[n];
};

/// True where the address is aligned for a pack of n numbers.
template <int n, class T>
HEED_BOTH bool packs(const T* at) {
  return reinterpret_cast<uintptr_t>(at) % alignof(Pack<T, n>) == 0;
}

}  // namespace heed::cuda
