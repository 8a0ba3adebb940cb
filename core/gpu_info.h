// What there is to say about the GPU.
#pragma once

#include <cstdint>
#include <string>

namespace heed {

/// What the GPU says of itself, such as "NVIDIA H200, 150 GB, 132 processors, compute 9.0, CUDA 13.0, driver
/// for 13.0"; empty when there is none.
std::string gpu_words();
/// Why a GPU that seems to be there cannot be used; empty when it can be, and where there is none.
std::string why_gpu_idle();
/// Bytes of the GPU's memory that nobody has taken; 0 when there is no GPU.
int64_t gpu_free_bytes();

}  // namespace heed
