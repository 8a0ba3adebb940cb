// Device memory for the caching allocator of core/memory/storage.cpp.
#pragma once

#include <cstdint>

#include "heed/core/cuda/runtime/context.h"
#include "heed/core/memory/page_allocator.h"

namespace heed::cuda {

/// Bytes behind each storage that nothing may write; only where the device is emulated.
inline constexpr int64_t guard_bytes = emulated ? 64 : 0;

const MemorySource& memory_source();

/// What the device has left for all processes.
int64_t free_bytes();

/// Where the device is emulated: fills the first `bytes` of `room` with NaN and the rest with a pattern; and
/// stops the program where that pattern has changed. Nothing on a real one, which has compute-sanitizer.
void prepare(void* data, int64_t bytes, int64_t room);
void examine(const void* data, int64_t bytes, int64_t room);

}  // namespace heed::cuda
