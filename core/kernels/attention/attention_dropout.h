// Which pairs of a tile dropout keeps, made from counters as core/kernels/dropout.h defines them.
#pragma once

#include "core/kernels/attention_tile.h"
#include "core/kernels/dropout.h"

namespace heed::kernel {

/// The dropout of one call of attention: the counters' constants, read once.
struct DropoutTerms {
  uint64_t seed = 0, high = 0;
  uint32_t least = 1;  ///< elements whose 16 bits are at least this are kept; 1 to 65536

  static DropoutTerms of(double p, const Draw& draw) {
    return {.seed = draw.seed,
            .high = Draw::high(draw.stream, *draw.tick.data<int64_t>()),
            .least = dropout_threshold(p)};
  }

  using U = simd::Words<double>;
  static constexpr int lanes = simd::Lanes<double>::count;

  /// Bits of `queries` x 64 pairs: bit j of query i speaks of element first + i row + j.
  template <class T>
  void fill(uint64_t first, uint64_t row, int64_t queries, int64_t keys, PairBits<T>& kept) const {
    const bool aligned = first % 8 == 0 && row % 8 == 0;
    for (int64_t i = 0; i < queries; i += lanes) {
      U element;
      for (int lane = 0; lane < lanes; ++lane) element[lane] = first + static_cast<uint64_t>(i + lane) * row;
      const U bits = from(element, keys, aligned);
      for (int lane = 0; lane < lanes && i + lane < tile; ++lane) kept.set(i + lane, bits[lane]);
    }
  }

  /// The bits of `count` elements (at most 64) from `element` on, for each lane; higher bits mean nothing.
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
      // Upper halves may hold rubbish after the exclusive or: only lower ones are multiplied.
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
    const Halves kept =
        reinterpret_cast<Halves>(reinterpret_cast<Halves>(words) > static_cast<uint16_t>(least - 1));
    const U bits = reinterpret_cast<U>(kept) & 0x0008000400020001ULL;
    return (bits * 0x0001000100010001ULL) >> 48;
  }
};

}  // namespace heed::kernel
