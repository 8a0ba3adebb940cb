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

/// Why there is no device, in one sentence; empty when there is one. Determined once.
const std::string& why_not();
/// why_not() where there is a GPU that cannot be used; else empty.
std::string why_idle();
/// Waits until the device has finished all queued work. Fails while a step is captured.
void synchronize();
/// Queues a copy of the invalid indices of kernels (core/cuda/runtime/index_error_record.h) to
/// pinned_readback(); false where no kernel that checks indices has run.
bool request_device_errors();
/// Fails with the first invalid index, once the device has finished the copy.
void check_device_errors();

/// Pinned memory of this thread for small copies from the device: `readback_bytes` for numbers, and device
/// errors behind them, so that both need one wait.
std::byte* pinned_readback();
inline constexpr int64_t readback_bytes = 4096;

/// Number of kernels started by this program, replayed ones included.
int64_t launches();
/// Adds to launches().
void count_launches(int64_t more);

/// Whether a kernel's limit of shared memory, which all threads and graphs share, is below `bytes`; records
/// that the caller raises it, which is never undone. Fails where the device has less.
bool raises_limit(const void* kernel, int bytes);
/// Maximum bytes of shared memory of a block: 101,376 on some devices, 166,912 or more on those of data
/// centres.
int block_room();
/// Whether block_room() is that of devices of data centres.
inline bool roomy() { return block_room() >= 160 * 1024; }

/// Copies from the host in the order of this thread's stream; the bytes may be changed once it returns. Fails
/// while a step is captured.
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
