// Predicted time of kernels on a GPU that is not there, from their bytes, operations and launches.
#pragma once

#include <span>

#include "heed/core/kernel_log.h"
#include "heed/train/program.h"

namespace heed::bench {

/// Measured rates of a GPU.
struct Card {
  const char* name;           ///< as --predict-on has it
  const char* source;         ///< what was measured, and where the numbers stand
  double bytes_per_second;    ///< rate of a copy larger than all caches, read plus written
  double exact_flops;         ///< FLOP/s of a large product in f32
  double tf32_flops;          ///< FLOP/s of a large product of factors rounded to tf32
  double bf16_flops;          ///< FLOP/s of a large product of factors in bf16
  double seconds_per_launch;  ///< seconds per kernel, of many small ones launched without waiting

  double flops(Rounding rounding) const;  ///< the rate of products of such factors
};

/// All cards whose rates are known.
std::span<const Card> cards();
/// The card of --predict-on, or the first one where it is not given. A usage error for an unknown name.
const Card& predicted_card(const ParsedArguments& arguments);

/// Predicted seconds of a call: the longer of bytes / rate and operations / rate, and the cost of its
/// launches. It is what a kernel would take that touches each tensor once and multiplies at the rate of a
/// large product: a floor, which real kernels miss.
double predicted_seconds(const KernelCall& call, const Card& card);

}  // namespace heed::bench
