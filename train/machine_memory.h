// How much memory this process holds, and how much more it may take.
#pragma once

#include <cstdint>
#include "core/bytes_text.h"
#include "core/io.h"

namespace heed {

/// Bytes of this process in the machine's memory now; 0 where the system does not tell.
int64_t resident_bytes();
/// The most it has been.
int64_t peak_resident_bytes();
/// What this process may still take: the least of what the machine (by a file like /proc/meminfo), its
/// control group and its limits leave. Where none of them tells: 2^60.
int64_t free_bytes(const Path& facts = "/proc/meminfo");

/// Caps the memory of tensors at what is free now, or a share of it: what does not fit is refused with a
/// reason, before the system ends somebody's process.
void cap_to_free_memory(int64_t sharing = 1);

}  // namespace heed
