// Runs a test case on every device of this machine, on tensors of the CPU.
#pragma once

#include <cstring>
#include <map>
#include <utility>

#include "heed/core/device.h"
#include "heed/core/launch.h"
#include "heed/core/random.h"
#include "heed/core/tensor.h"
#include "heed/tests/catch.h"

namespace heed {

/// The device of this run of the test case, which runs once for each: `const Device device = any_device();`
inline Device any_device() {
  const Device device = GENERATE(from_range(devices()));
  CAPTURE(to_string(device));
  return device;
}

/// Copies tensors of the CPU to a device, strides and shared storage included: views of one storage stay
/// views of one.
class Mirror {
 public:
  explicit Mirror(Device device) : device_(device) {}

  Tensor operator()(const Tensor& x) {
    if (!x || x.device() == device_) return x;
    auto [place, fresh] = copies_.try_emplace(x.storage().get());
    if (fresh) {
      const Shape all{x.storage()->bytes() / bytes_of(x.dtype())};
      place->second.host = Tensor(x).seen_as(all, Strides{1}, 0);
      place->second.there = place->second.host.to(device_);
    }
    if (place->second.there.dtype() != x.dtype()) fail("mirror: a storage that is seen with two types.");
    return place->second.there.seen_as(x.shape(), x.strides(), x.offset());
  }
  Draw operator()(const Draw& draw) { return {draw.seed, draw.stream, (*this)(draw.tick)}; }
  /// A struct of tensors defines how to copy it: `Terms mirrored(Mirror&, const Terms&)`.
  template <class T>
  auto operator()(const T& x) {
    if constexpr (requires { mirrored(*this, x); }) {
      return mirrored(*this, x);
    } else {
      return x;
    }
  }

  /// Copies the kernels' results back into the CPU's tensors.
  void fetch() {
    for (auto& [storage, copy] : copies_) {
      const Tensor back = copy.there.to(Device::cpu);
      if (back.size() > 0) std::memcpy(copy.host.raw(), back.raw(), static_cast<size_t>(back.bytes()));
    }
  }

 private:
  struct Copy {
    Tensor host, there;
  };
  Device device_;
  std::map<const Storage*, Copy> copies_;
};

/// Runs a kernel on a device with the CPU's tensors.
template <Kernel K, class... Args>
void launch_on(Device device, const Args&... args) {
  if (device == Device::cpu) return launch<K>(device, args...);
  Mirror mirror(device);
  launch<K>(device, mirror(args)...);
  mirror.fetch();
}

/// The device of launch_here(): set by OnEachDevice, else the CPU.
inline Device& device_here() {
  static Device device = Device::cpu;
  return device;
}

/// Declare it first in a test case, to run it once for each device: `const OnEachDevice here;`
struct OnEachDevice {
  OnEachDevice() { device_here() = any_device(); }
  ~OnEachDevice() { device_here() = Device::cpu; }
  OnEachDevice(const OnEachDevice&) = delete;
  OnEachDevice& operator=(const OnEachDevice&) = delete;
};

/// Runs a kernel with the CPU's tensors on the device of this run of the test case.
template <Kernel K, class... Args>
void launch_here(const Args&... args) {
  launch_on<K>(device_here(), args...);
}

}  // namespace heed
