// The devices of this machine, and names of devices and element types.
#include "heed/core/device.h"

#include "heed/core/cuda/module/module.h"
#include "heed/core/cuda/runtime/context.h"
#include "heed/core/cuda/runtime/memory.h"
#include "heed/core/dtype.h"
#include "heed/core/error.h"
#include "heed/core/gpu_info.h"
#include "heed/core/settings_in_errors.h"

namespace heed {

const char* to_string(DType dtype) {
  static constexpr const char* names[] = {"f32", "f64", "bf16", "i32", "i64", "u8"};  // in the order of DType
  return names[static_cast<size_t>(dtype)];
}

const char* to_string(Device device) { return device == Device::cpu ? "cpu" : "cuda"; }

std::string why_no_cuda() {
  if constexpr (built_with_cuda) {
    const std::string closed = cuda::why_closed();
    return closed.empty() ? cuda::why_not() : closed;
  }
  return text("this build of heed has no CUDA kernels (",
              advice("./heed COMMAND --device cuda", "CMake's -DHEED_CUDA=ON"), " builds them)");
}

std::vector<Device> devices() {
  if (why_no_cuda().empty()) return {Device::cpu, Device::cuda};
  return {Device::cpu};
}

Device device_named(const std::string& name) {
  if (name == "cpu") return Device::cpu;
  // A device emulated by the CPU is for tests, so "auto" never means it.
  if (name == "auto") return devices().size() > 1 && !cuda::emulated ? Device::cuda : Device::cpu;
  if (name != "cuda") fail("device '", name, "' is unknown. Known: auto, cpu, cuda.");
  const std::string why = why_no_cuda();
  if (!why.empty()) fail(Fault::device, "device cuda: ", why, ". ", device_advice());
  return Device::cuda;
}

std::string gpu_words() {
  if constexpr (built_with_cuda) {
    if (!why_no_cuda().empty()) return {};
    const cuda::Properties found = cuda::properties();
    const auto version = [](int number) { return text(number / 1000, ".", number % 1000 / 10); };
    return text(found.name, ", ", found.memory / 1'000'000'000, " GB, ", found.processors,
                " processors, compute ", found.major, ".", found.minor, ", CUDA ", version(found.runtime),
                ", driver for ", version(found.driver));
  }
  return {};
}

std::string why_gpu_idle() {
  if constexpr (built_with_cuda) {
    const std::string closed = cuda::why_closed();
    if (closed.empty()) return cuda::why_idle();
    if (cuda::gpu_seen()) return closed;
  }
  return {};
}

int64_t gpu_free_bytes() {
  if constexpr (built_with_cuda) {
    if (why_no_cuda().empty()) return cuda::free_bytes();
  }
  return 0;
}

void synchronize([[maybe_unused]] Device device) {
  if constexpr (built_with_cuda) {
    if (device != Device::cuda) return;
    cuda::require_open();
    cuda::synchronize();
  }
}

}  // namespace heed
