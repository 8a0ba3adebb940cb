// Widens numbers of 16 bits to f32.
#include "heed/core/io/float_bytes.h"

#include <bit>
#include <cstdint>
#include <cstring>

#include "heed/core/io/half.h"

namespace heed {

size_t float_bytes(std::string_view dtype) {
  if (dtype == "f32") return sizeof(float);
  return dtype == "bf16" || dtype == "f16" ? sizeof(uint16_t) : 0;
}

std::vector<float> floats_of(std::span<const std::byte> bytes, std::string_view dtype) {
  std::vector<float> out(bytes.size() / float_bytes(dtype));
  if (out.empty()) return out;
  if (dtype == "f32") {
    std::memcpy(out.data(), bytes.data(), out.size() * sizeof(float));
    return out;
  }
  for (size_t i = 0; i < out.size(); ++i) {
    uint16_t bits;
    std::memcpy(&bits, bytes.data() + i * sizeof bits, sizeof bits);
    out[i] = dtype == "f16" ? half_value(bits) : std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }
  return out;
}

}  // namespace heed
