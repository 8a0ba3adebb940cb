// The parts of `heed bench`; each is defined in the file of its name.
#pragma once

#include "heed/train/commands/command.h"

namespace heed::bench {

void bench_train(const ParsedArguments& call);      ///< training steps and their matrix products alone
void bench_attention(const ParsedArguments& call);  ///< one attention layer by sequence length
void bench_gemm(const ParsedArguments& call);       ///< products relative to the peak and OpenBLAS
void bench_limits(const ParsedArguments& call);     ///< the device's peak rates
void bench_ops(const ParsedArguments& call);        ///< other kernels, relative to one pass over their memory
void bench_decode(const ParsedArguments& call);     ///< greedy decoding and beam search

}  // namespace heed::bench
