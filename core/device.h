// Devices: the CPU and the GPU.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#ifndef HEED_CUDA_BUILD
/// 1 in a program built with the CUDA kernels; CMake defines it, here for compilers called by hand.
#define HEED_CUDA_BUILD 0
#endif

namespace heed {

/// True when this library was built with its CUDA kernels.
inline constexpr bool built_with_cuda = HEED_CUDA_BUILD != 0;

/// Where the numbers of a tensor lie, and its ops run.
enum class Device : uint8_t { cpu, cuda };

const char* to_string(Device device);  ///< "cpu" or "cuda"
/// "cpu", "cuda" or "auto" (the best there is). Fails for anything else, and for a device that is not there.
Device device_named(const std::string& name);
/// The devices of this machine that this build can use; the CPU is always the first.
std::vector<Device> devices();
/// Why there is no GPU, in one sentence; empty when there is one.
std::string why_no_cuda();
/// Where this thread makes tensors and random numbers that name no device: the CPU, unless somebody says
/// otherwise.
inline thread_local Device default_device = Device::cpu;

/// Makes this the default while one lives.
class DefaultDevice {
 public:
  /// Changes the default of this thread until its end; nests.
  explicit DefaultDevice(Device device) : outer_(default_device) { default_device = device; }
  ~DefaultDevice() { default_device = outer_; }
  DefaultDevice(const DefaultDevice&) = delete;
  DefaultDevice& operator=(const DefaultDevice&) = delete;

 private:
  Device outer_;
};

/// Waits until the device has finished everything asked of it. Nothing to do on the CPU.
void synchronize(Device device);

}  // namespace heed
