// Philox random numbers in vector lanes, and the dropout masks that elementwise/dropout.h defines.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "heed/core/kernels/simd/vector.h"

namespace heed::simd {

/// One 64-bit counter a lane.
using Counters = Words<double>;

/// The 64-bit products of the lower 32 bits of each lane.
inline Counters multiply_low_halves(Counters a, Counters b) {
#if defined(__AVX512F__)
  return reinterpret_cast<Counters>(
      _mm512_maskz_mul_epu32(0xff, reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
#elif defined(__AVX2__)
  return reinterpret_cast<Counters>(
      _mm256_mul_epu32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
#elif defined(__SSE2__)
  return reinterpret_cast<Counters>(
      _mm_mul_epu32(reinterpret_cast<__m128i>(a), reinterpret_cast<__m128i>(b)));
#else
  return (a & 0xffffffffU) * (b & 0xffffffffU);
#endif
}

/// Draws the dropout masks of one call, 16 elements per lane. A call has a seed, an upper half of its
/// counters and a threshold.
class KeepBits {
 public:
  static constexpr int lanes = Lanes<double>::count;
  static constexpr int block = 16;  ///< elements of a Philox block

  KeepBits() = default;
  /// Keeps elements whose 16 random bits are at least `threshold`, 0 to 65536.
  KeepBits(uint64_t seed, uint64_t high, uint32_t threshold)
      : upper_byte_(threshold > 0xffffU ? 0xff : static_cast<uint8_t>(threshold >> 8)),
        lower_byte_(static_cast<uint8_t>(threshold)),
        has_ties_(threshold <= 0xffffU) {
    uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
    for (int round = 0; round < rounds; ++round) {
      key_[0][round] = k0;
      key_[1][round] = k1;
      k0 += 0x9E3779B9U;
      k1 += 0xBB67AE85U;
    }
    // The upper half of the counter is equal in all lanes, so half of the first round is done here.
    const uint64_t product = uint64_t{0xCD9E8D57U} * (high & 0xffffffffU);
    key_[0][0] ^= product >> 32;
    key_[1][0] ^= high >> 32;
    product_ = product;
  }

  /// Bit e of a lane is set where element e of Philox block `index` of that lane is kept. Higher bits are
  /// zero.
  Counters keep_masks(Counters index) const {
    constexpr uint64_t low = 0xffffffffU;
    const Counters front_factor = Counters{} + 0xD2511F53U, back_factor = Counters{} + 0xCD9E8D57U;
    // The upper halves of c0 to c3 are not used before the last round: products read lower halves alone.
    Counters c3 = multiply_low_halves(index, front_factor), c1 = Counters{} + product_;
    Counters c0 = (index >> 32) ^ key_[0][0], c2 = (c3 >> 32) ^ key_[1][0];
#pragma GCC unroll 7
    for (int round = 1; round < rounds; ++round) {
      const Counters p0 = multiply_low_halves(c0, front_factor), p1 = multiply_low_halves(c2, back_factor);
      c0 = (p1 >> 32) ^ c1 ^ key_[0][round];
      c2 = (p0 >> 32) ^ c3 ^ key_[1][round];
      c1 = p1;
      c3 = p0;
    }
    const Counters front = (c0 & low) | (c1 << 32), back = (c2 & low) | (c3 << 32);
    // Each byte of `block_xor` is the xor of all 16 bytes of the block.
    Counters block_xor = front ^ back;
    block_xor ^= (block_xor >> 32) | (block_xor << 32);
    block_xor ^= ((block_xor >> 16) & 0x0000ffff0000ffffU) | ((block_xor & 0x0000ffff0000ffffU) << 16);
    block_xor ^= ((block_xor >> 8) & 0x00ff00ff00ff00ffU) | ((block_xor & 0x00ff00ff00ff00ffU) << 8);
    return keep_bits_of_bytes(front, block_xor) | (keep_bits_of_bytes(back, block_xor) << 8);
  }

 private:
  typedef uint8_t Bytes __attribute__((vector_size(bytes)));

  /// Bit n of a lane is set where byte n of `drawn` is above the threshold's upper byte, or equal to it while
  /// the xor of the other bytes is at least the lower byte: dropout_bits() of elementwise/dropout.h.
  Counters keep_bits_of_bytes(Counters drawn, Counters block_xor) const {
#if defined(__AVX512BW__)
    const __m512i bytes_drawn = reinterpret_cast<__m512i>(drawn);
    const __m512i others = reinterpret_cast<__m512i>(drawn ^ block_xor);
    const __m512i upper = _mm512_set1_epi8(static_cast<char>(upper_byte_));
    const __m512i lower = _mm512_set1_epi8(static_cast<char>(lower_byte_));
    uint64_t keep = _mm512_cmpgt_epu8_mask(bytes_drawn, upper);
    if (has_ties_)
      keep |= _mm512_mask_cmpge_epu8_mask(_mm512_cmpeq_epu8_mask(bytes_drawn, upper), others, lower);
    return reinterpret_cast<Counters>(
        _mm512_maskz_cvtepu8_epi64(0xff, _mm_cvtsi64_si128(static_cast<int64_t>(keep))));
#else
    const Bytes bytes_drawn = reinterpret_cast<Bytes>(drawn),
                others = reinterpret_cast<Bytes>(drawn ^ block_xor);
    Counters keep = reinterpret_cast<Counters>(bytes_drawn > upper_byte_);
    if (has_ties_)
      keep |= reinterpret_cast<Counters>(bytes_drawn == upper_byte_) &
              reinterpret_cast<Counters>(others >= lower_byte_);
    return ((keep & 0x8040201008040201U) * 0x0101010101010101U) >> 56;
#endif
  }

  static constexpr int rounds = 7;  // that of dropout_block() in elementwise/dropout.h

  uint64_t key_[2][rounds] = {}, product_ = 0;
  uint8_t upper_byte_ = 0, lower_byte_ = 0;
  bool has_ties_ = true;
};

/// x where bit i of `bits` is set in lane i, else zero.
template <class T>
inline Vector<T> where_kept(uint32_t bits, Vector<T> x) {
  Words<T> lane_bit;
  for (int i = 0; i < Lanes<T>::count; ++i) lane_bit[i] = Word<T>{1} << i;
  return ((Words<T>{} + bits) & lane_bit) != 0 ? x : Vector<T>{};
}

}  // namespace heed::simd
