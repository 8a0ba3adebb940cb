// A kernel is a struct with a CPU and a CUDA implementation (its twins); launch() picks one.
#pragma once

#include <concepts>
#include <typeinfo>
#include <utility>

#include "heed/core/device.h"
#include "heed/core/error.h"
#include "heed/core/host_device.h"
#include "heed/core/isa.h"
#include "heed/core/kernel_log.h"

namespace heed {

/// Both twins must be declared, else it does not compile, and defined, else it does not link with CUDA.
/// The CPU twin exists once per Isa.
template <class K>
concept Kernel = requires {
  &K::template cpu<Isa::portable>;
  &K::cuda;
}
&&std::same_as<decltype(&K::template cpu<Isa::portable>), decltype(&K::cuda)>;

/// Fails (Fault::internal) where an argument is a tensor on another device; tensors inside structs are not
/// checked. A kernel that reads the host's memory makes a GPU unusable for the process.
template <class... Args>
void check_places(Device device, const Args&... args) {
  int number = 0;
  const auto check = [&](const auto& x) {
    ++number;
    if constexpr (requires { x.storage(); }) {
      if (x && x.device() != device)
        fail(Fault::internal, "argument ", number, " of a kernel for ", to_string(device), " lies on ",
             to_string(x.device()), ".");
    }
  };
  (check(args), ...);
}

/// Runs the twin of K for the device, without a record in the log of kernels.
template <Kernel K, class... Args>
void run_twin(Device device, Args&&... args) {
  if (device == Device::cpu) {
    const DefaultDevice scratch_device(Device::cpu);  // device of tensors that the kernel creates
    if constexpr (all_isas) {
      const Isa best = isa();
      if (best == Isa::avx512) return K::template cpu<Isa::avx512>(std::forward<Args>(args)...);
      if (best == Isa::avx2) return K::template cpu<Isa::avx2>(std::forward<Args>(args)...);
    }
    return K::template cpu<Isa::portable>(std::forward<Args>(args)...);
  }
  if constexpr (built_with_cuda) {
    check_places(device, args...);
    K::cuda(std::forward<Args>(args)...);
  } else {
    fail(Fault::device, "this build of heed has no CUDA: configure with the preset `cuda`.");
  }
}

/// Runs K on the device. Kernels write into the outputs given to them and never wait for the device.
template <Kernel K, class... Args>
void launch(Device device, Args&&... args) {
  if (!KernelLog::wanted()) return run_twin<K>(device, std::forward<Args>(args)...);
  KernelLog::record(device, typeid(K), KernelArguments::of(args...),
                    [&] { run_twin<K>(device, std::forward<Args>(args)...); });
}

}  // namespace heed
