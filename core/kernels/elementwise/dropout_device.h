// The elements that one dropout keeps, on a device: a thread draws the Philox block of up to 16 of them.
#pragma once

#include <cstdint>

#include "heed/core/distributed/batch_shard.h"
#include "heed/core/kernels/elementwise/dropout.h"

namespace heed::kernel {

/// A DropoutMask of a tensor [..., width], as an argument of kernels. With p = 0 all elements are kept.
struct DropoutBits {
  static constexpr int block = 16;  ///< elements of a Philox block

  uint64_t seed, stream;
  const int64_t* tick;
  const int32_t* places;                   ///< [rows], or null
  uint64_t elements_of_earlier_processes;  ///< precede the first element in the whole batch
  uint32_t threshold;                      ///< elements whose 16 random bits are below it are dropped
  double scale;                            ///< factor of the others

  /// For a tensor of this shape.
  DropoutBits(const Shape& shape, const DropoutMask& mask)
      : seed(mask.draw.seed),
        stream(mask.draw.stream),
        tick(mask.p > 0 ? mask.draw.tick.data<int64_t>() : nullptr),
        places(mask.places.places ? mask.places.places.data<int32_t>() : nullptr),
        elements_of_earlier_processes(
            skipped_draws(places != nullptr ? mask.places.padded_rows * shape[-1] : shape.size())),
        threshold(dropout_threshold(mask.p)),
        scale(dropout_scale(mask.p)) {}

  /// The upper half of the counters, the same for all elements.
  HEED_BOTH uint64_t high() const { return tick != nullptr ? Draw::high(stream, *tick) : 0; }

  /// Bit e is set where element (row, column + e) is kept, for e < count <= 16. Where the number of the first
  /// is no multiple of 16, the elements lie in two blocks.
  HEED_BOTH uint32_t keep_mask(uint64_t high, int64_t row, int64_t width, int64_t column, int count) const {
    if (threshold == 0) return 0xffffU;
    const uint64_t number = elements_of_earlier_processes +
                            static_cast<uint64_t>((places != nullptr ? places[row] : row) * width + column);
    const int skipped = static_cast<int>(number % block);
    uint32_t mask = dropout_keep_mask(dropout_block(seed, high, number / block), threshold) >> skipped;
    if (skipped + count > block)
      mask |= dropout_keep_mask(dropout_block(seed, high, number / block + 1), threshold)
              << (block - skipped);
    return mask;
  }
};

}  // namespace heed::kernel
