// What `heed bench` can time; each is defined in the file of its name.
#pragma once

#include "train/commands/verb.h"

namespace heed::bench {

void bench_train(const Invocation& call);      ///< training steps against their products alone
void bench_attention(const Invocation& call);  ///< one attention against length
void bench_gemm(const Invocation& call);       ///< products against the machine's peak and OpenBLAS

}  // namespace heed::bench
