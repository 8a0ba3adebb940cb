// Numbers that lie side by side and are read or written at once.
#pragma once

#include <cstdint>

#include "heed/core/host_device.h"

namespace heed::cuda {

/// n numbers: one load where they take up to 16 bytes. Begins at a multiple of its size, or of 16.
template <class T, int n>
struct alignas(sizeof(T) * n < 16 ? sizeof(T) * n : 16) Pack {
  T x[n];
};

/// True where a pack of n may begin.
template <int n, class T>
HEED_BOTH bool packs(const T* at) {
  return reinterpret_cast<uintptr_t>(at) % alignof(Pack<T, n>) == 0;
}

}  // namespace heed::cuda
