// How much memory of the machine and of the GPU this process holds, and how much more it may take.
#pragma once

#include <cstdint>
#include "heed/core/io/byte_text.h"
#include "heed/core/io/files.h"

namespace heed {

/// Resident bytes of this process; 0 where the system does not report them.
int64_t resident_bytes();
/// The maximum of resident_bytes() so far; 0 where the system does not report it.
int64_t peak_resident_bytes();
/// Free bytes that malloc holds; 0 where that is not known. The memory of tensors is not from malloc.
int64_t free_heap_bytes();
/// Bytes that this process may still take: the minimum of what the machine (by a file like /proc/meminfo),
/// its control group and its limits leave; 2^60 where none of them is known.
int64_t free_bytes(const Path& metadata = "/proc/meminfo");

/// The part of a GPU's free bytes that tensors may use; the rest is for the driver, the workspaces of
/// libraries and captured steps.
int64_t usable_gpu_bytes(int64_t gpu_free);

/// How cap_to_free_memory() divides what is free.
struct FreeMemory {
  int64_t sharing = 1;        ///< number of processes that share this machine, each with a GPU of its own
  bool device_given = false;  ///< whether the default device has a cap already, which stays
};
/// Caps the memory of tensors at the bytes that are free now: on the CPU at a share of the machine's memory,
/// on the GPU, where that is the default device, at usable_gpu_bytes(). An allocation that does not fit then
/// fails with a reason, before the system kills a process.
void cap_to_free_memory(const FreeMemory& free = {});

}  // namespace heed
