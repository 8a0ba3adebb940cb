// Attention for calls with few queries, as in decoding.
#pragma once

#include "heed/core/kernels/attention/attention_device.h"

namespace heed::kernel {

/// True for few queries without dropout.
inline bool takes_rows(const AttentionShape& x, const AttentionParams& params) {
  constexpr int64_t few_queries = 3;
  return x.Tq <= few_queries && dropout_threshold(params.dropout) == 0;
}

/// Attention with one block per query, or several where queries are few and keys many.
void attention_rows(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionParams& params,
                    const Tensor& out, const Tensor& lse);

}  // namespace heed::kernel
