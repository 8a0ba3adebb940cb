// SHA-256 and CRC-32C, with the instructions of the CPU where it has them.
#include "heed/core/io/hash.h"

#include <algorithm>
#include <bit>
#include <cstring>
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace heed {
namespace {

// First 32 bits of the fractions of the square roots of the first 8 primes and of the cube roots of the
// first 64.
constexpr std::array<uint32_t, 8> initial = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                             0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
alignas(16) constexpr std::array<uint32_t, 64> round_constants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t big_endian(const uint8_t* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | uint32_t{bytes[3]};
}

#if defined(__x86_64__)
/// The same with the SHA instructions, which keep the state as the halves (a b e f) and (c d g h).
__attribute__((target("sha,sse4.1,ssse3"))) void blocks_sha(std::array<uint32_t, 8>& state,
                                                            const uint8_t* bytes, size_t count) {
  const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  const auto& s = state;
  const auto lane = [](uint32_t x) { return static_cast<int>(x); };
  __m128i abef = _mm_set_epi32(lane(s[0]), lane(s[1]), lane(s[4]), lane(s[5]));
  __m128i cdgh = _mm_set_epi32(lane(s[2]), lane(s[3]), lane(s[6]), lane(s[7]));
  for (; count > 0; --count, bytes += 64) {
    const __m128i abef_before = abef;
    const __m128i cdgh_before = cdgh;
    __m128i w[4];
    for (int i = 0; i < 4; ++i) {
      w[i] = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + 16 * i)), swap);
    }
    for (int i = 0; i < 16; ++i) {  // four rounds each
      const __m128i k =
          _mm_load_si128(reinterpret_cast<const __m128i*>(&round_constants[static_cast<size_t>(4 * i)]));
      const __m128i sum = _mm_add_epi32(w[0], k);
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
      const __m128i seventh = _mm_alignr_epi8(w[3], w[2], 4);  // w[t - 7]
      const __m128i next =
          _mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(w[0], w[1]), seventh), w[3]);
      w[0] = w[1], w[1] = w[2], w[2] = w[3], w[3] = next;
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  alignas(16) uint32_t half[4];
  _mm_store_si128(reinterpret_cast<__m128i*>(half), abef);
  state[0] = half[3], state[1] = half[2], state[4] = half[1], state[5] = half[0];
  _mm_store_si128(reinterpret_cast<__m128i*>(half), cdgh);
  state[2] = half[3], state[3] = half[2], state[6] = half[1], state[7] = half[0];
}

/// GCC 12 has no name for the SHA feature in __builtin_cpu_supports: leaf 7, bit 29 of ebx.
bool has_sha() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  return (ebx >> 29 & 1) != 0 && __builtin_cpu_supports("sse4.1") != 0;
}
#endif

void blocks(std::array<uint32_t, 8>& state, const uint8_t* bytes, size_t count) {
#if defined(__x86_64__)
  static const bool fast = has_sha();
  if (fast) return blocks_sha(state, bytes, count);
#endif
  detail::sha256_portable(state, bytes, count);
}

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
__attribute__((target("sse4.2"))) uint32_t crc32c_sse(std::string_view bytes, uint32_t before) {
  uint64_t sum = ~before;
  const char* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; at += 8, left -= 8) {
    uint64_t word = 0;
    std::memcpy(&word, at, 8);
    sum = _mm_crc32_u64(sum, word);
  }
  auto narrow = static_cast<uint32_t>(sum);
  for (; left > 0; ++at, --left) narrow = _mm_crc32_u8(narrow, static_cast<uint8_t>(*at));
  return ~narrow;
}
#endif

}  // namespace

void detail::sha256_portable(std::array<uint32_t, 8>& state, const uint8_t* bytes, size_t count) {
  for (; count > 0; --count, bytes += 64) {
    std::array<uint32_t, 64> w;
    for (size_t i = 0; i < 16; ++i) w[i] = big_endian(bytes + 4 * i);
    for (size_t i = 16; i < 64; ++i) {
      const uint32_t low = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
      const uint32_t high = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
      w[i] = w[i - 16] + low + w[i - 7] + high;
    }
    auto [a, b, c, d, e, f, g, h] = state;
    for (size_t i = 0; i < 64; ++i) {
      const uint32_t mixed_e = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
      const uint32_t first = h + mixed_e + ((e & f) ^ (~e & g)) + round_constants[i] + w[i];
      const uint32_t mixed_a = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
      const uint32_t second = mixed_a + ((a & b) ^ (a & c) ^ (b & c));
      h = g, g = f, f = e, e = d + first, d = c, c = b, b = a, a = first + second;
    }
    const std::array<uint32_t, 8> added = {a, b, c, d, e, f, g, h};
    for (size_t i = 0; i < 8; ++i) state[i] += added[i];
  }
}

Sha256::Sha256() : state_(initial), block_{} {}

void Sha256::update(std::string_view bytes) {
  length_ += bytes.size();
  if (filled_ > 0) {
    const size_t take = std::min(bytes.size(), block_.size() - filled_);
    std::memcpy(block_.data() + filled_, bytes.data(), take);
    filled_ += take;
    bytes.remove_prefix(take);
    if (filled_ < block_.size()) return;
    blocks(state_, block_.data(), 1);
    filled_ = 0;
  }
  const size_t whole = bytes.size() / 64;
  blocks(state_, reinterpret_cast<const uint8_t*>(bytes.data()), whole);
  bytes.remove_prefix(whole * 64);
  if (!bytes.empty()) std::memcpy(block_.data(), bytes.data(), bytes.size());
  filled_ = bytes.size();
}

std::string Sha256::digest() const {
  Sha256 last = *this;
  const uint64_t bits = length_ * 8;
  std::string tail(1, '\x80');
  tail.append((119 - filled_) % 64, '\0');
  for (int shift = 56; shift >= 0; shift -= 8) tail += static_cast<char>(bits >> shift & 0xff);
  last.update(tail);
  std::string out;
  for (const uint32_t word : last.state_) {
    for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(word >> shift & 0xff);
  }
  return out;
}

std::string Sha256::hex() const {
  std::string out;
  for (const char byte : digest()) {
    out += "0123456789abcdef"[static_cast<uint8_t>(byte) >> 4];
    out += "0123456789abcdef"[static_cast<uint8_t>(byte) & 0xf];
  }
  return out;
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 sum;
  sum.update(bytes);
  return sum.hex();
}

uint32_t detail::crc32c_table(std::string_view bytes, uint32_t before) {
  static constexpr std::array<uint32_t, 256> table = crc_table();
  uint32_t sum = ~before;
  for (const char byte : bytes) sum = sum >> 8 ^ table[(sum ^ static_cast<uint8_t>(byte)) & 0xff];
  return ~sum;
}

uint32_t crc32c(std::string_view bytes, uint32_t before) {
#if defined(__x86_64__)
  static const bool fast = __builtin_cpu_supports("sse4.2") != 0;
  if (fast) return crc32c_sse(bytes, before);
#endif
  return detail::crc32c_table(bytes, before);
}

}  // namespace heed
