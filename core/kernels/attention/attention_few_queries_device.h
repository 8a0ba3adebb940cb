// When queries are so few that each goes through its keys by itself.
#pragma once

#include "core/kernels/attention_device.h"

namespace heed::kernel {

/// True for few queries whose weights are not dropped.
inline bool takes_rows(const AttentionShape& x, const AttentionTerms& terms) {
  constexpr int64_t few_queries = 3;
  return x.Tq <= few_queries && dropout_threshold(terms.dropout) == 0;
}

/// Attention, one query a block, or several blocks where queries are few and keys many.
void attention_rows(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionTerms& terms,
                    const Tensor& out, const Tensor& lse);

}  // namespace heed::kernel
