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

/// The bits: element i of a draw uses half-word i % 8 of block i / 8.
HEED_BOTH inline uint32_t dropout_bits(uint64_t seed, uint64_t high, uint64_t i) {
  const Philox block = Philox::at(seed, i / 8, high);
  return (block.word[(i % 8) / 2] >> (16 * (i % 2))) & 0xffffU;
}

/// Those of the elements of a whole block, from the least bit on: element e is kept when bit e is set.
HEED_BOTH inline uint32_t dropout_byte(const Philox& block, uint32_t threshold) {
  uint32_t kept = 0;
  for (int e = 0; e < 8; ++e) {
    const uint32_t bits = (block.word[e / 2] >> (16 * (e % 2))) & 0xffffU;
    kept |= (bits >= threshold ? 1U : 0U) << e;
  }
  return kept;
}

/// An element is kept when its bits are at least this.
HEED_BOTH inline uint32_t dropout_threshold(double p) { return static_cast<uint32_t>(p * 65536 + 0.5); }

/// What a kept element is multiplied by: 1 / (1 - p), with p as the threshold has it.
HEED_BOTH inline double dropout_scale(double p) { return 65536.0 / (65536.0 - dropout_threshold(p)); }

}  // namespace heed::kernel
