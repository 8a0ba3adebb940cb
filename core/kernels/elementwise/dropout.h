// Dropout whose mask is made from counters and never stored.
#pragma once

#include "heed/core/isa.h"
#include "heed/core/random.h"

namespace heed::kernel {

/// y = x / (1 - p) where the element is kept, else 0. Element i is kept when 16 bits of the draw at i are at
/// least p 65536; so p is a multiple of 1/65536. The gradient is the same kernel on dy. Contiguous.
struct Dropout {
  template <Isa>
  static void cpu(const Tensor& x, double p, const Draw& draw, const Tensor& y);
  static void cuda(const Tensor& x, double p, const Draw& draw, const Tensor& y);
};

/// The block of random bits that dropout draws from, of 7 rounds: a mask needs a block for every 16 elements,
/// so the 3 rounds more that all other random numbers take would be felt.
HEED_BOTH inline Philox dropout_block(uint64_t seed, uint64_t high, uint64_t index) {
  return Philox::at<7>(seed, index, high);
}

/// The second byte of an element's 16 bits: all bytes of its block but its own xor'ed. It is uniform whatever
/// the first is, and of use only where the first equals that of the threshold, so it costs no other draw.
HEED_BOTH inline uint32_t dropout_xor(const Philox& block) {
  uint32_t every = block.word[0] ^ block.word[1] ^ block.word[2] ^ block.word[3];
  every ^= every >> 16;
  return (every ^ (every >> 8)) & 0xffU;
}

/// The bits: element i of a draw uses byte i % 16 of block i / 16, and below it the xor of the others.
HEED_BOTH inline uint32_t dropout_bits(uint64_t seed, uint64_t high, uint64_t i) {
  const Philox block = dropout_block(seed, high, i / 16);
  const uint32_t own = (block.word[(i % 16) / 4] >> (8 * (i % 4))) & 0xffU;
  return (own << 8) | (dropout_xor(block) ^ own);
}

/// Those of the elements of a whole block, from the least bit on: element e is kept when bit e is set.
HEED_BOTH inline uint32_t dropout_sixteen(const Philox& block, uint32_t threshold) {
  const uint32_t every = dropout_xor(block);
  uint32_t kept = 0;
  for (int e = 0; e < 16; ++e) {
    const uint32_t own = (block.word[e / 4] >> (8 * (e % 4))) & 0xffU;
    kept |= (((own << 8) | (every ^ own)) >= threshold ? 1U : 0U) << e;
  }
  return kept;
}

/// An element is kept when its bits are at least this.
HEED_BOTH inline uint32_t dropout_threshold(double p) { return static_cast<uint32_t>(p * 65536 + 0.5); }

/// What a kept element is multiplied by: 1 / (1 - p), with p as the threshold has it.
HEED_BOTH inline double dropout_scale(double p) { return 65536.0 / (65536.0 - dropout_threshold(p)); }

}  // namespace heed::kernel
