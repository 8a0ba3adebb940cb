// How much memory this process holds, and how much more it may take, of the machine's and of the GPU's.
#pragma once

#include <cstdint>
#include "heed/core/io/byte_text.h"
#include "heed/core/io/files.h"

namespace heed {

/// Bytes of this process in the machine's memory now; 0 where the system does not tell.
int64_t resident_bytes();
/// The most it has been.
int64_t peak_resident_bytes();
/// Bytes that malloc holds and nobody uses; 0 where that is not known. Tensors are not malloc's.
int64_t free_heap_bytes();
/// What this process may still take: the least of what the machine (by a file like /proc/meminfo), its
/// control group and its limits leave. Where none of them tells: 2^60.
int64_t free_bytes(const Path& metadata = "/proc/meminfo");

/// Of so many free bytes of a GPU, those for tensors: the rest is for its driver, the workspaces of libraries
/// and recorded steps.
int64_t for_tensors(int64_t gpu_free);

/// What limits are to leave room for.
struct FreeMemory {
  int64_t sharing = 1;        ///< processes on this machine, with a GPU of its own each
  bool device_given = false;  ///< the default device's cap is known and stays
};
/// Caps the memory of tensors at what is free now: on the CPU at a share of the machine's, on the GPU, where
/// that is the default device, at what is for_tensors(). What does not fit is refused with a reason, before
/// the system ends somebody's process.
void cap_to_free_memory(const FreeMemory& free = {});

}  // namespace heed
