// A kernel is a struct with two twins; launch() picks one.
#pragma once

#include <concepts>
#include <utility>

#include "core/both.h"
#include "core/device.h"
#include "core/error.h"
#include "core/isa.h"

namespace heed {

/// Leaving a twin out does not compile, on any machine; leaving it undefined does not link where CUDA is
/// built. The twin of the CPU exists once for each Isa.
template <class K>
concept Kernel = requires {
  &K::template cpu<Isa::portable>;
  &K::cuda;
}
&&std::same_as<decltype(&K::template cpu<Isa::portable>), decltype(&K::cuda)>;

/// Runs K on the device. Kernels write into the outputs given to them and never wait for the device.
template <Kernel K, class... Args>
void launch(Device device, Args&&... args) {
  if (device == Device::cpu) {
    const DefaultDevice beside(Device::cpu);  // what the kernel makes for itself
    if constexpr (all_isas) {
      const Isa best = isa();
      if (best == Isa::avx512) return K::template cpu<Isa::avx512>(std::forward<Args>(args)...);
      if (best == Isa::avx2) return K::template cpu<Isa::avx2>(std::forward<Args>(args)...);
    }
    return K::template cpu<Isa::portable>(std::forward<Args>(args)...);
  }
  if constexpr (built_with_cuda) {
    K::cuda(std::forward<Args>(args)...);
  } else {
    fail(Fault::device, "this build of heed has no CUDA: configure with the preset `cuda`.");
  }
}

}  // namespace heed
