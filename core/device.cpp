// Which devices there are.
#include "core/device.h"

#include "core/dtype.h"
#include "core/error.h"

namespace heed {

const char* to_string(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "f32";
    case DType::f64:
      return "f64";
    case DType::bf16:
      return "bf16";
    case DType::i32:
      return "i32";
    case DType::i64:
      return "i64";
    case DType::u8:
      return "u8";
  }
  return "?";
}

const char* to_string(Device device) { return device == Device::cpu ? "cpu" : "cuda"; }

std::vector<Device> devices() { return {Device::cpu}; }

std::string why_no_cuda() { return "this build of heed has no CUDA kernels"; }

Device device_named(const std::string& name) {
  if (name == "cpu" || name == "auto") return Device::cpu;
  if (name == "cuda") fail(Fault::device, "device cuda: ", why_no_cuda(), ". Use --device cpu or auto.");
  fail("device '", name, "' is unknown. Known: auto, cpu, cuda.");
}

void synchronize(Device) {}

}  // namespace heed
