// Grouped-query attention: query heads in groups that share one key-value head. Ainslie et al. 2023, arXiv
// 2305.13245.
#pragma once

#include "heed/nn/attention.h"

namespace heed {

/// The width of all query heads together. Fails when the heads do not divide the model width, for a
/// width below 1, and for a dropout outside of [0, 1).
int64_t query_width(const AttentionConfig& config);
/// The width of all key-value heads together. Fails when they do not divide the query heads, and as
/// query_width() does.
int64_t key_value_width(const AttentionConfig& config);
/// Fails unless the number of heads of k [B, Hk, Tk, d] divides that of q [B, H, Tq, d].
void check_key_value_heads(const Tensor& q, const Tensor& k);
/// Repeats each key-value head of x [B, Hk, T, d] for the H / Hk query heads that share it -> [B, H, T, d], H
/// = `heads`; x itself when Hk = H.
Tensor repeat_heads(const Tensor& x, int64_t heads);

}  // namespace heed
