// Check sums: SHA-256 for identity, CRC-32C for damage.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace heed {

/// SHA-256 of bytes that come in pieces (FIPS 180-4).
class Sha256 {
 public:
  Sha256();
  /// Adds bytes; the pieces they come in do not matter.
  void update(std::string_view bytes);
  /// The 32 bytes of the digest of all bytes so far; more may be added afterwards.
  std::string digest() const;
  /// The same as 64 lower-case hexadecimal digits.
  std::string hex() const;

 private:
  std::array<uint32_t, 8> state_;
  std::array<uint8_t, 64> block_;
  size_t filled_ = 0;
  uint64_t length_ = 0;
};

/// SHA-256 of the bytes as 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view bytes);

/// CRC-32C (Castagnoli) of the bytes, continuing from the sum of what came before them; 0xE3069283 for
/// "123456789".
uint32_t crc32c(std::string_view bytes, uint32_t before = 0);

namespace detail {
/// The portable version of `crc32c`, for comparison.
uint32_t crc32c_table(std::string_view bytes, uint32_t before);
/// The portable version of what SHA-256 does with `count` blocks of 64 bytes.
void sha256_portable(std::array<uint32_t, 8>& state, const uint8_t* bytes, size_t count);
}  // namespace detail

}  // namespace heed
