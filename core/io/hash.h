// Checksums: SHA-256 identifies contents, CRC-32C finds damage.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;  // OpenSSL's state of a digest

namespace heed {

/// SHA-256 of bytes that come in pieces (FIPS 180-4).
class Sha256 {
 public:
  Sha256();
  /// Adds bytes; how they are cut into pieces does not matter.
  void update(std::string_view bytes);
  /// Returns the 32 bytes of the digest of all bytes so far; more may be added afterwards.
  std::string digest() const;
  /// Returns digest() as 64 lower-case hexadecimal digits.
  std::string hex() const;

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  using Context = std::unique_ptr<evp_md_ctx_st, Free>;

  Context context_;
};

/// SHA-256 of the bytes as 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view bytes);

/// CRC-32C (Castagnoli) of the bytes, continued from `previous`, the checksum of the bytes before them.
/// 0xE3069283 for "123456789".
uint32_t crc32c(std::string_view bytes, uint32_t previous = 0);
/// A checksum of crc32c() as 8 lower-case hexadecimal digits.
std::string crc32c_text(uint32_t sum);
/// CRC-32C of the bytes as 8 lower-case hexadecimal digits.
std::string crc32c_hex(std::string_view bytes);

/// The bytes as lower-case hexadecimal digits, two for each byte.
std::string hexadecimal(std::string_view bytes);

namespace detail {
/// crc32c() by a table, on any CPU.
uint32_t crc32c_table(std::string_view bytes, uint32_t previous);
}  // namespace detail

}  // namespace heed
