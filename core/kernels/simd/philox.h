// Philox in vector lanes, and the bits of dropout that elementwise/dropout.h defines.
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

/// The products of the lower halves of the lanes.
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

/// The dropout of one call: Draw's seed and high half, and the threshold. sixteen() gives the bits of a block
/// of the counter a lane.
class KeepBits {
 public:
  static constexpr int lanes = Lanes<double>::count;
  static constexpr int block = 16;  ///< elements of a block of Philox

  KeepBits() = default;
  /// Keeps elements whose 16 bits are at least `least`, 0 to 65536.
  KeepBits(uint64_t seed, uint64_t high, uint32_t least)
      : first_(least > 0xffffU ? 0xff : static_cast<uint8_t>(least >> 8)),
        second_(static_cast<uint8_t>(least)),
        has_ties_(least <= 0xffffU) {
    uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
    for (int round = 0; round < rounds; ++round) {
      key_[0][round] = k0;
      key_[1][round] = k1;
      k0 += 0x9E3779B9U;
      k1 += 0xBB67AE85U;
    }
    // The upper half of the counter is that of all lanes, so half of the first round is done here.
    const uint64_t product = uint64_t{0xCD9E8D57U} * (high & 0xffffffffU);
    key_[0][0] ^= product >> 32;
    key_[1][0] ^= high >> 32;
    product_ = product;
  }

  /// Bit e of a lane: element e of Philox block `index` of that lane is kept. Higher bits are zero.
  Counters sixteen(Counters index) const {
    constexpr uint64_t low = 0xffffffffU;
    const Counters front_factor = Counters{} + 0xD2511F53U, back_factor = Counters{} + 0xCD9E8D57U;
    // Upper halves hold garbage until the end: products read lower halves alone.
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
    // All sixteen bytes xor'ed, in each byte.
    Counters every = front ^ back;
    every ^= (every >> 32) | (every << 32);
    every ^= ((every >> 16) & 0x0000ffff0000ffffU) | ((every & 0x0000ffff0000ffffU) << 16);
    every ^= ((every >> 8) & 0x00ff00ff00ff00ffU) | ((every & 0x00ff00ff00ff00ffU) << 8);
    return eight(front, every) | (eight(back, every) << 8);
  }

 private:
  typedef uint8_t Bytes __attribute__((vector_size(bytes)));

  /// One bit for each byte of a lane: it is above the threshold's first byte, or equal, and all others
  /// xor'ed are at least the second.
  Counters eight(Counters drawn, Counters every) const {
#if defined(__AVX512BW__)
    const __m512i own = reinterpret_cast<__m512i>(drawn);
    const __m512i others = reinterpret_cast<__m512i>(drawn ^ every);
    const __m512i first = _mm512_set1_epi8(static_cast<char>(first_));
    const __m512i second = _mm512_set1_epi8(static_cast<char>(second_));
    uint64_t kept = _mm512_cmpgt_epu8_mask(own, first);
    if (has_ties_) kept |= _mm512_mask_cmpge_epu8_mask(_mm512_cmpeq_epu8_mask(own, first), others, second);
    return reinterpret_cast<Counters>(
        _mm512_maskz_cvtepu8_epi64(0xff, _mm_cvtsi64_si128(static_cast<int64_t>(kept))));
#else
    const Bytes own = reinterpret_cast<Bytes>(drawn), others = reinterpret_cast<Bytes>(drawn ^ every);
    Counters kept = reinterpret_cast<Counters>(own > first_);
    if (has_ties_)
      kept |= reinterpret_cast<Counters>(own == first_) & reinterpret_cast<Counters>(others >= second_);
    return ((kept & 0x8040201008040201U) * 0x0101010101010101U) >> 56;
#endif
  }

  static constexpr int rounds = 7;  // as dropout_block() in elementwise/dropout.h

  uint64_t key_[2][rounds] = {}, product_ = 0;
  uint8_t first_ = 0, second_ = 0;
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
