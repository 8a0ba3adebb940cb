// The parts of `heed bench`, each defined in the file of its name, and what they share.
#pragma once

#include "heed/train/program.h"

namespace heed::bench {

void bench_train(const ParsedArguments& arguments);      ///< training steps and their matrix products alone
void bench_attention(const ParsedArguments& arguments);  ///< one attention layer by sequence length
void bench_dropout(const ParsedArguments& arguments);    ///< a step with dropout beside one without
void bench_gemm(const ParsedArguments& arguments);       ///< products relative to the peak and OpenBLAS
void bench_limits(const ParsedArguments& arguments);     ///< the device's peak rates
void bench_ops(const ParsedArguments& arguments);  ///< other kernels, relative to one pass over their memory
void bench_decode(const ParsedArguments& arguments);  ///< greedy decoding and beam search
void bench_step(const ParsedArguments& arguments);    ///< one token of an attention layer after a history

/// An integer option. A usage error outside of `low` to `high`.
int64_t integer_option(const ParsedArguments& arguments, const char* name, int64_t otherwise, int64_t low,
                       int64_t high);
/// A number of seconds above 0.
double seconds_option(const ParsedArguments& arguments, double otherwise);
/// The attention specs behind the part's name, each checked; `otherwise` where none is given.
std::vector<std::string> spec_arguments(const ParsedArguments& arguments, std::vector<std::string> otherwise);
/// `specs` with the reference, softmax, at their head.
std::vector<std::string> after_softmax(std::vector<std::string> specs);

}  // namespace heed::bench
