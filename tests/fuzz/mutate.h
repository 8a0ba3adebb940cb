// Damage by number: the same number does the same damage on every machine.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace heed {

/// Bytes after damage, and what was done.
struct Mutation {
  std::string bytes;
  const char* kind;  ///< of the last damage done
};

/// Damages `base` once or a few times: bits flipped, bytes set, parts cut out, doubled, repeated up to 256
/// KiB or cut off, length fields and digits overwritten with numbers that readers trip over, parts of
/// `others` put in.
Mutation mutate(std::string_view base, std::span<const std::string> others, uint64_t number);

/// One part of `base` repeated so often that 256 bytes to 256 KiB are added, as `mutate` does it.
std::string repeat_part(std::string_view base, uint64_t number);

/// Exactly one bit flipped, anywhere in the bytes from `begin` to `end`.
std::string flip_bit(std::string_view base, size_t begin, size_t end, uint64_t number);

}  // namespace heed
