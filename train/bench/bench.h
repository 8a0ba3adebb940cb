// The parts of `heed bench`, and their common options. Each part is defined in the file of its name;
// bench_limits() in machine_peaks.cpp.
#pragma once

#include "heed/train/program.h"

namespace heed::bench {

void bench_train(const ParsedArguments& arguments);      ///< training steps, and their matrix products alone
void bench_kernels(const ParsedArguments& arguments);    ///< one training step, kernel by kernel
void bench_attention(const ParsedArguments& arguments);  ///< attention layers by sequence length
void bench_dropout(const ParsedArguments& arguments);    ///< steps with dropout, relative to steps without
void bench_gemm(const ParsedArguments& arguments);  ///< matrix products, relative to the peak and to OpenBLAS
void bench_limits(const ParsedArguments& arguments);  ///< the device's peak rates
void bench_ops(const ParsedArguments& arguments);  ///< other kernels, relative to one pass over their memory
void bench_decode(const ParsedArguments& arguments);  ///< greedy decoding and beam search
void bench_step(const ParsedArguments& arguments);    ///< one decoded token of an attention layer

/// An integer option, or its default. A usage error outside of `low` to `high`.
int64_t integer_option(const ParsedArguments& arguments, const char* name, int64_t default_value, int64_t low,
                       int64_t high);
/// The option --seconds, or its default. A usage error unless it is above 0.
double seconds_option(const ParsedArguments& arguments, double default_value);
/// The attention specs behind the part's name, or the default. A usage error for an unknown one.
std::vector<std::string> spec_arguments(const ParsedArguments& arguments,
                                        std::vector<std::string> default_specs);
/// The specs with softmax, the reference, as the first.
std::vector<std::string> after_softmax(std::vector<std::string> specs);

}  // namespace heed::bench
