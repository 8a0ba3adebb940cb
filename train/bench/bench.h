// The parts of `heed bench`; each is defined in the file of its name.
#pragma once

#include "heed/train/commands/command.h"

namespace heed::bench {

void bench_train(const ParsedArguments& arguments);      ///< training steps and their matrix products alone
void bench_attention(const ParsedArguments& arguments);  ///< one attention layer by sequence length
void bench_dropout(const ParsedArguments& arguments);    ///< a step with dropout beside one without
void bench_gemm(const ParsedArguments& arguments);       ///< products relative to the peak and OpenBLAS
void bench_limits(const ParsedArguments& arguments);     ///< the device's peak rates
void bench_ops(const ParsedArguments& arguments);  ///< other kernels, relative to one pass over their memory
void bench_decode(const ParsedArguments& arguments);  ///< greedy decoding and beam search
void bench_step(const ParsedArguments& arguments);    ///< one token of an attention layer after a history

}  // namespace heed::bench
