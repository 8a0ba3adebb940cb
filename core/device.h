// Devices: the CPU and the GPU.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heed/core/scope.h"

#ifndef HEED_CUDA_BUILD
/// 1 in a program built with the CUDA kernels; CMake defines it, here for compilers called by hand.
#define HEED_CUDA_BUILD 0
#endif

namespace heed {

/// True when this library was built with its CUDA kernels.
inline constexpr bool built_with_cuda = HEED_CUDA_BUILD != 0;

/// The device that holds a tensor and runs its ops.
enum class Device : uint8_t { cpu, cuda };

const char* to_string(Device device);  ///< "cpu" or "cuda"
/// The device named "cpu", "cuda" or "auto" (the best available). Fails for other names and missing devices.
Device device_named(const std::string& name);
/// The devices of this machine that this build can use, the CPU first.
std::vector<Device> devices();
/// Why there is no GPU, in one sentence; empty when there is one.
std::string why_no_cuda();
/// The device on which this thread creates tensors and random numbers where none is named.
inline thread_local Device default_device = Device::cpu;

/// Changes the default device of this thread while it lives.
class DefaultDevice {
 public:
  explicit DefaultDevice(Device device) : device_(default_device, device) {}  ///< nests

 private:
  ScopedValue<Device> device_;
};

/// Waits until the device has finished all queued work; returns at once on the CPU.
void synchronize(Device device);

}  // namespace heed
