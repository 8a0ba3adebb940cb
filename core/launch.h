// A kernel is a struct with two twins; launch() picks one.
#pragma once

#include <concepts>
#include <utility>

#include "core/device.h"
#include "core/error.h"

#ifdef __CUDACC__
#define HEED_BOTH __host__ __device__
#else
#define HEED_BOTH
#endif

namespace heed {

/// Leaving a twin out does not compile, on any machine; leaving it undefined does not link where CUDA is
/// built.
template <class K>
concept Kernel = requires {
  &K::cpu;
  &K::cuda;
}
&&std::same_as<decltype(K::cpu), decltype(K::cuda)>;

/// Runs K on the device. Kernels write into the outputs given to them and never wait for the device.
template <Kernel K, class... Args>
void launch(Device device, Args&&... args) {
  if (device == Device::cpu) return K::cpu(std::forward<Args>(args)...);
  if constexpr (built_with_cuda) {
    K::cuda(std::forward<Args>(args)...);
  } else {
    fail(Fault::device, "this build of heed has no CUDA: configure with the preset `cuda`.");
  }
}

}  // namespace heed
