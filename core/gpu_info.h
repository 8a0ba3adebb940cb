// Descriptions of the GPU.
#pragma once

#include <cstdint>
#include <string>

namespace heed {

/// A description of the GPU, such as "NVIDIA H200, 150 GB, 132 processors, compute 9.0, CUDA 13.0, driver for
/// 13.0"; empty when there is none.
std::string gpu_words();
/// Why a GPU of this machine cannot be used; empty when it can be, and where there is none.
std::string why_gpu_idle();
/// Free bytes of the GPU's memory; 0 when there is no GPU.
int64_t gpu_free_bytes();

}  // namespace heed
