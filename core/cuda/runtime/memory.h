// Device memory for the caching allocator of core/memory/storage.cpp.
#pragma once

#include <cstdint>

#include "heed/core/cuda/runtime/context.h"
#include "heed/core/memory/page_allocator.h"

namespace heed::cuda {

/// Guard bytes behind each storage, which no kernel may write; only on an emulated device.
inline constexpr int64_t guard_bytes = emulated ? 64 : 0;

/// Allocates device memory for the page allocator.
const MemorySource& memory_source();

/// Bytes of device memory that no process has allocated.
int64_t free_bytes();

/// On an emulated device, fills the first `bytes` of a block of `room` bytes with NaN and the guard bytes
/// behind them with a pattern. Does nothing on a real device, for which there is compute-sanitizer.
void prepare(void* data, int64_t bytes, int64_t room);
/// On an emulated device, ends the program where a kernel has changed the guard bytes of prepare().
void examine(const void* data, int64_t bytes, int64_t room);

}  // namespace heed::cuda
