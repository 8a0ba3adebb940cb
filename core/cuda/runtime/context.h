// The CUDA device for the rest of core, without CUDA's headers. Only in builds with CUDA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "heed/core/error.h"

namespace heed {
class Storage;
}

namespace heed::cuda {

/// True when the CUDA kernels are compiled for the CPU, which emulates the device.
#if defined(HEED_CUDA_EMULATED) && HEED_CUDA_EMULATED
inline constexpr bool emulated = true;
#else
inline constexpr bool emulated = false;
#endif

/// Why no device can be used, in one sentence; empty when one can. Determined once.
const std::string& why_not();
/// Why a GPU of this machine cannot be used; empty where it can be, and where there is none.
std::string why_idle();
/// Waits until the device has finished all queued work. Fails while a step is captured.
void synchronize();
/// Queues a copy of the records of invalid indices (core/cuda/runtime/index_error_record.h) to
/// pinned_readback(); false where no kernel that checks indices has run.
bool request_index_errors();
/// Fails with the first invalid index of the records, once the device has finished the copy.
void check_index_errors();

/// Pinned memory of this thread for small copies from the device: `readback_bytes` for numbers, then the
/// records of invalid indices, so that one wait serves both.
std::byte* pinned_readback();
inline constexpr int64_t readback_bytes = 4096;

/// Number of kernels started by this program, replayed ones included.
int64_t launches();
/// Adds to launches().
void count_launches(int64_t more);

/// Whether the caller must raise the kernel's limit of shared memory to `bytes`, which all threads and graphs
/// share and which is never lowered; true once for each new maximum. Fails where the device has less.
bool needs_higher_limit(const void* kernel, int bytes);
/// Maximum bytes of shared memory of a block: 101,376 on some devices, 166,912 or more on those of data
/// centres.
int max_shared_bytes();
/// Whether blocks have the shared memory of devices of data centres.
inline bool has_large_shared_memory() { return max_shared_bytes() >= 160 * 1024; }

/// Copies from the host in the order of this thread's stream; the caller may change the bytes once it
/// returns. Fails while a step is captured.
void copy_in(void* to, const void* from, int64_t bytes);
/// Copies to the host in the order of this thread's stream and waits. Fails while a step is captured.
void copy_out(void* to, const void* from, int64_t bytes);

/// Properties of the device.
struct Properties {
  std::string name;
  int64_t memory = 0;  ///< bytes
  int major = 0, minor = 0, processors = 0;
  int runtime = 0, driver = 0;  ///< versions, as 1000 major + 10 minor
};
Properties properties();

}  // namespace heed::cuda
