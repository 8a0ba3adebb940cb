// Dropout whose mask is computed from counters and never stored, alone and with the work around it.
// Activations of bf16 are computed in f32 and rounded once, when they are stored. With mask.p = 0 all
// elements are kept.
#pragma once

#include "heed/core/isa.h"
#include "heed/core/packed_sequences.h"
#include "heed/core/random.h"

namespace heed::kernel {

/// One dropout of a tensor. Element i is kept when its 16 random bits are at least p 65536, so p is rounded
/// to a multiple of 1/65536; a kept one is multiplied by 1 / (1 - p), others become 0.
struct DropoutMask {
  double p = 0;              ///< probability that an element is dropped; with 0 the rest may be empty
  Draw draw = {};            ///< its random numbers
  PaddedPlaces places = {};  ///< with packed x [1, N, W], element (n, c) has the number places[n] W + c
};

/// y = dropout(x); contiguous. One of them may be bf16 and the other f32. The gradient is this kernel applied
/// to dy.
struct Dropout {
  template <Isa>
  static void cpu(const Tensor& x, const DropoutMask& mask, const Tensor& y);
  static void cuda(const Tensor& x, const DropoutMask& mask, const Tensor& y);
};

/// y = x + dropout(branch), of one shape; contiguous.
struct AddDropout {
  template <Isa>
  static void cpu(const Tensor& x, const Tensor& branch, const DropoutMask& mask, const Tensor& y);
  static void cuda(const Tensor& x, const Tensor& branch, const DropoutMask& mask, const Tensor& y);
};

/// y = dropout(F(x)) for F of DropoutActivations (functions.h); contiguous.
template <class F>
struct ActivationDropout {
  template <Isa>
  static void cpu(const Tensor& x, const DropoutMask& mask, const Tensor& y);
  static void cuda(const Tensor& x, const DropoutMask& mask, const Tensor& y);
};

/// dx = F'(x) dropout(dy), from the x and the mask of ActivationDropout; contiguous.
template <class F>
struct ActivationDropoutBack {
  template <Isa>
  static void cpu(const Tensor& x, const Tensor& dy, const DropoutMask& mask, const Tensor& dx);
  static void cuda(const Tensor& x, const Tensor& dy, const DropoutMask& mask, const Tensor& dx);
};

/// Philox block `index` with 7 rounds, for 16 elements. All other random numbers take 10 rounds, which would
/// slow dropout down measurably.
HEED_BOTH inline Philox dropout_block(uint64_t seed, uint64_t high, uint64_t index) {
  return Philox::at<7>(seed, index, high);
}

/// The xor of all 16 bytes of a block.
HEED_BOTH inline uint32_t xor_of_bytes(const Philox& block) {
  uint32_t bytes = block.word[0] ^ block.word[1] ^ block.word[2] ^ block.word[3];
  bytes ^= bytes >> 16;
  return (bytes ^ (bytes >> 8)) & 0xffU;
}

/// The 16 random bits of element e < 16 of a block: its byte e, and below it the xor of the other 15 bytes.
/// The lower byte is uniform whatever the upper one is, and matters where that equals the threshold's.
HEED_BOTH inline uint32_t dropout_bits(const Philox& block, uint32_t block_xor, int e) {
  const uint32_t byte = (block.word[e / 4] >> (8 * (e % 4))) & 0xffU;
  return (byte << 8) | (block_xor ^ byte);
}

/// The 16 random bits of element i: those of element i % 16 of block i / 16.
HEED_BOTH inline uint32_t dropout_bits(uint64_t seed, uint64_t high, uint64_t i) {
  const Philox block = dropout_block(seed, high, i / 16);
  return dropout_bits(block, xor_of_bytes(block), static_cast<int>(i % 16));
}

/// The keep mask of the 16 elements of a block: bit e is set when element e is kept.
HEED_BOTH inline uint32_t dropout_keep_mask(const Philox& block, uint32_t threshold) {
  const uint32_t block_xor = xor_of_bytes(block);
  uint32_t mask = 0;
  for (int e = 0; e < 16; ++e) mask |= (dropout_bits(block, block_xor, e) >= threshold ? 1U : 0U) << e;
  return mask;
}

/// The threshold of random bits, p 65536 rounded: elements whose 16 bits are below it are dropped.
HEED_BOTH inline uint32_t dropout_threshold(double p) { return static_cast<uint32_t>(p * 65536 + 0.5); }

/// Factor of a kept element: 1 / (1 - p), with p rounded as in the threshold.
HEED_BOTH inline double dropout_scale(double p) { return 65536.0 / (65536.0 - dropout_threshold(p)); }

}  // namespace heed::kernel
