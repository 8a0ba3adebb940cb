// The dropout masks of tiles on the CPU, from the counters that core/kernels/elementwise/dropout.h defines.
#pragma once

#include "heed/core/kernels/attention/attention_tile.h"
#include "heed/core/kernels/elementwise/dropout.h"

namespace heed::kernel {

/// The dropout of one attention call: seed, stream and threshold.
struct DropoutTerms {
  uint64_t seed = 0, high = 0;
  uint32_t least = 1;  ///< dropout keeps elements whose 16 bits are at least this; 1 to 65536

  static DropoutTerms of(double p, const Draw& draw) {
    return {.seed = draw.seed,
            .high = Draw::high(draw.stream, *draw.tick.data<int64_t>()),
            .least = dropout_threshold(p)};
  }

  using U = simd::Words<double>;
  static constexpr int lanes = simd::Lanes<double>::count;

  /// Fills the mask of [queries, 64] pairs: bit j of query i belongs to element first + i * row + j.
  template <class T>
  void fill(uint64_t first, uint64_t row, int64_t queries, int64_t keys, PairBits<T>& keep_mask) const {
    const bool aligned = first % 8 == 0 && row % 8 == 0;
    for (int64_t i = 0; i < queries; i += lanes) {
      U element;
      for (int lane = 0; lane < lanes; ++lane) element[lane] = first + static_cast<uint64_t>(i + lane) * row;
      const U bits = from(element, keys, aligned);
      for (int lane = 0; lane < lanes && i + lane < tile; ++lane) keep_mask.set(i + lane, bits[lane]);
    }
  }

  /// For each lane: the bits of `count` elements (at most 64) from `element` on; higher bits are undefined.
  /// `aligned`: every element is a multiple of 8.
  U from(U element, int64_t count, bool aligned) const {
    const U skipped = element & 7, block = element >> 3;
    U low = {}, high_byte = {};
    const int64_t blocks = (count + (aligned ? 7 : 14)) / 8;
    for (int64_t b = 0; b < blocks; ++b) {
      const U bits = eight(block + static_cast<uint64_t>(b));
      if (b < 8) {
        low |= bits << (8 * b);
      } else {
        high_byte = bits;
      }
    }
    return (low >> skipped) | ((high_byte << 1) << (63 - skipped));
  }

 private:
  typedef uint16_t Halves __attribute__((vector_size(simd::bytes)));

  /// Philox (core/random.h) of one block a lane; bit e of the result says whether element e of the block is
  /// kept.
  U eight(U block) const {
    constexpr uint64_t mask = 0xffffffffU;
    U c0 = block & mask, c1 = block >> 32, c2 = U{} + (high & mask), c3 = U{} + (high >> 32);
    uint64_t k0 = seed & mask, k1 = seed >> 32;
    for (int round = 0; round < 10; ++round) {
      // Only the lower halves are multiplied; the xor leaves garbage in the upper ones.
      const U p0 = (c0 & mask) * uint64_t{0xD2511F53U};
      const U p1 = (c2 & mask) * uint64_t{0xCD9E8D57U};
      c0 = (p1 >> 32) ^ c1 ^ k0;
      c2 = (p0 >> 32) ^ c3 ^ k1;
      c1 = p1;
      c3 = p0;
      k0 = (k0 + 0x9E3779B9U) & mask;
      k1 = (k1 + 0xBB67AE85U) & mask;
    }
    return four((c0 & mask) | (c1 << 32)) | (four((c2 & mask) | (c3 << 32)) << 4);
  }

  /// One bit for each of the four half-words of a lane.
  U four(U words) const {
    const Halves keep_mask =
        reinterpret_cast<Halves>(reinterpret_cast<Halves>(words) > static_cast<uint16_t>(least - 1));
    const U bits = reinterpret_cast<U>(keep_mask) & 0x0008000400020001ULL;
    return (bits * 0x0001000100010001ULL) >> 48;
  }
};

}  // namespace heed::kernel
