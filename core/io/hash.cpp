// SHA-256 by OpenSSL, and CRC-32C with the instructions of the CPU where it has them.
#include "heed/core/io/hash.h"

#include <openssl/evp.h>

#include <array>
#include <cstring>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "heed/core/error.h"

namespace heed {
namespace {

void check_openssl(int status) {
  if (status != 1) fail(Fault::internal, "sha256: OpenSSL cannot compute it.");
}

/// CRC of each byte, without the inversions at both ends.
constexpr std::array<uint32_t, 256> crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t sum = byte;
    for (int bit = 0; bit < 8; ++bit) sum = sum >> 1 ^ ((sum & 1) != 0 ? 0x82f63b78u : 0);
    table[byte] = sum;
  }
  return table;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t crc32c_sse(std::string_view bytes, uint32_t previous) {
  uint64_t sum = ~previous;
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data(), 8);
    sum = _mm_crc32_u64(sum, word);
  }
  auto crc = static_cast<uint32_t>(sum);
  for (const char byte : bytes) crc = _mm_crc32_u8(crc, static_cast<uint8_t>(byte));
  return ~crc;
}
#endif

evp_md_ctx_st* new_context() {
  evp_md_ctx_st* context = EVP_MD_CTX_new();
  if (context == nullptr) fail(Fault::memory, "sha256: there is no memory for the state of OpenSSL.");
  return context;
}

}  // namespace

Sha256::Sha256() : context_(new_context()) {
  check_openssl(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr));
}

void Sha256::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

void Sha256::update(std::string_view bytes) {
  check_openssl(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()));
}

std::string Sha256::digest() const {
  const Context copy(new_context());  // taking the digest ends the copy, not this object
  std::string out(32, '\0');
  check_openssl(EVP_MD_CTX_copy_ex(copy.get(), context_.get()));
  check_openssl(EVP_DigestFinal_ex(copy.get(), reinterpret_cast<unsigned char*>(out.data()), nullptr));
  return out;
}

std::string Sha256::hex() const { return hexadecimal(digest()); }

std::string sha256_hex(std::string_view bytes) {
  Sha256 sum;
  sum.update(bytes);
  return sum.hex();
}

uint32_t detail::crc32c_table(std::string_view bytes, uint32_t previous) {
  static constexpr std::array<uint32_t, 256> table = crc_table();
  uint32_t sum = ~previous;
  for (const char byte : bytes) sum = sum >> 8 ^ table[(sum ^ static_cast<uint8_t>(byte)) & 0xff];
  return ~sum;
}

uint32_t crc32c(std::string_view bytes, uint32_t previous) {
#if defined(__x86_64__)
  static const bool has_crc32 = __builtin_cpu_supports("sse4.2") != 0;
  if (has_crc32) return crc32c_sse(bytes, previous);
#endif
  return detail::crc32c_table(bytes, previous);
}

std::string crc32c_hex(std::string_view bytes) { return crc32c_text(crc32c(bytes)); }

std::string crc32c_text(uint32_t sum) {
  std::string big_endian;
  for (int shift = 24; shift >= 0; shift -= 8) big_endian += static_cast<char>(sum >> shift & 0xff);
  return hexadecimal(big_endian);
}

std::string hexadecimal(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  for (const char byte : bytes) {
    out += digits[static_cast<uint8_t>(byte) >> 4];
    out += digits[static_cast<uint8_t>(byte) & 0xf];
  }
  return out;
}

}  // namespace heed
