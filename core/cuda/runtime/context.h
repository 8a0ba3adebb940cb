// The device as the rest of core sees it, without CUDA's headers. Only where CUDA is built.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "heed/core/error.h"

namespace heed {
class Storage;
}

namespace heed::cuda {

/// True when the device is emulated on the CPU: the same kernels, compiled for the host.
#if defined(HEED_CUDA_EMULATED) && HEED_CUDA_EMULATED
inline constexpr bool emulated = true;
#else
inline constexpr bool emulated = false;
#endif

/// Why there is no device, in one sentence; empty when there is one. Looks once.
const std::string& why_not();
/// The same where there seems to be a GPU all the same; else empty.
std::string why_idle();
/// Waits until all that was asked of the device is done. Fails while a step is captured.
void synchronize();
/// Asks for what kernels could not use (core/cuda/runtime/device_error.h), into the landing; false where no
/// kernel that may refuse has ever run. Once the device has finished, check_refusals() fails with the first
/// such index.
bool ask_refusals();
void check_refusals();

/// Pinned memory of this thread, where small reads of the device land, so that numbers and refusals are one
/// wait: `landing_bytes` for numbers, the refusals behind them.
std::byte* pinned_readback();
inline constexpr int64_t landing_bytes = 4096;

/// Kernels started since the program began, replayed ones included.
int64_t launches();
void count_launches(int64_t more);

/// Whether a kernel's limit of shared memory, which is the same for all threads and graphs, is below `bytes`
/// so far; it is taken to be raised then, and is never lowered. Fails where the device has less.
bool raises_limit(const void* kernel, int bytes);
/// Bytes of shared memory that a block may have: 101,376 on some devices, 166,912 or more on those of data
/// centres.
int block_room();
/// Whether that is as much as devices of data centres have.
inline bool roomy() { return block_room() >= 160 * 1024; }

/// Copies between host and device in the order of this thread's stream. From the host: the bytes may be
/// changed once it returns. To the host: waits. Both fail while a step is captured.
void copy_in(void* to, const void* from, int64_t bytes);
void copy_out(void* to, const void* from, int64_t bytes);

/// What the device says of itself.
struct Properties {
  std::string name;
  int64_t memory = 0;  ///< bytes
  int major = 0, minor = 0, processors = 0;
  int runtime = 0, driver = 0;  ///< versions, as 1000 major + 10 minor
};
Properties properties();

}  // namespace heed::cuda
