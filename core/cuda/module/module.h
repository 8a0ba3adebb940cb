// The CUDA kernels as a module: a shared object that is opened when it is needed, so that one program serves
// machines with and without a GPU. Without CMake's HEED_CUDA_MODULE the kernels are linked in.
#pragma once

#include <string>

#include "heed/core/error.h"
#include "heed/core/settings_in_errors.h"

namespace heed::cuda {

#if defined(HEED_CUDA_MODULE) && HEED_CUDA_MODULE
/// Opens the module when first called. Returns why it is closed, as one sentence; empty where it is open.
const std::string& why_closed();
/// Whether functions of core/cuda/runtime/ and kernels of the GPU may be called. Does not open the module.
bool is_open();
/// Whether the driver of a GPU is loaded.
bool gpu_seen();
#else
inline std::string why_closed() { return {}; }
inline bool is_open() { return true; }
inline bool gpu_seen() { return true; }
#endif

/// Opens the module; Fault::device where that fails.
inline void require_open() {
  if (const std::string why = why_closed(); !why.empty())
    fail(Fault::device, "device cuda: ", why, ". ", device_advice());
}

}  // namespace heed::cuda
