// What `heed bench` can time; each is defined in the file of its name.
#pragma once

#include "train/commands/verb.h"

namespace heed::bench {

void bench_train(const Invocation& call);      ///< training steps against their products alone
void bench_attention(const Invocation& call);  ///< one attention layer against length
void bench_gemm(const Invocation& call);       ///< products against the machine's peak and OpenBLAS
void bench_limits(const Invocation& call);     ///< what the device can do at most
void bench_ops(const Invocation& call);        ///< what is no product, against one pass over its memory
void bench_decode(const Invocation& call);     ///< greedy and beam decoding

}  // namespace heed::bench
