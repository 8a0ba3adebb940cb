// Where numbers live.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#ifndef HEED_CUDA_BUILD
#define HEED_CUDA_BUILD 0
#endif

namespace heed {

/// True when this library was built with its CUDA kernels.
inline constexpr bool built_with_cuda = HEED_CUDA_BUILD != 0;

enum class Device : uint8_t { cpu, cuda };

const char* to_string(Device device);
/// "cpu", "cuda" or "auto" (the best there is). Fails for anything else, and for a device that is not there.
Device device_named(const std::string& name);
/// The devices of this machine that this build can use; the CPU is always the first.
std::vector<Device> devices();
/// Why there is no GPU, in one sentence; empty when there is one.
std::string why_no_cuda();
/// Waits until the device has finished everything asked of it. Nothing to do on the CPU.
void synchronize(Device device);

}  // namespace heed
