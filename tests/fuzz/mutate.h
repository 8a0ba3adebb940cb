// Deterministic damage to bytes: a pure function of a number.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace heed {

/// Damaged bytes and the kind of damage.
struct Mutation {
  std::string bytes;
  const char* kind;  ///< kind of the last damage
};

/// Damages `base` one or several times: flips bits, sets bytes, removes, doubles or truncates parts, repeats
/// them up to 256 KiB, overwrites length fields and digits with extreme numbers, inserts parts of `others`.
Mutation mutate(std::string_view base, std::span<const std::string> others, uint64_t number);

/// Repeats a part of `base`, adding 256 bytes to 256 KiB, as mutate() does.
std::string repeat_part(std::string_view base, uint64_t number);

/// Flips exactly one bit in the bytes from `begin` to `end`.
std::string flip_bit(std::string_view base, size_t begin, size_t end, uint64_t number);

}  // namespace heed
