// Numbers of files as f32: f32, bf16 and f16, little-endian.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace heed {

/// Bytes of a number of the type "f32", "bf16" or "f16"; 0 for other names.
size_t float_bytes(std::string_view dtype);

/// The numbers as f32, exactly. `dtype`: one of these three; the bytes are a multiple of its size.
std::vector<float> floats_of(std::span<const std::byte> bytes, std::string_view dtype);

}  // namespace heed
