// ProbSparse attention: selects the queries that attend to all keys, by a measure of sparsity on sampled
// scores; also causally. Zhou et al. 2021, "Informer", arXiv 2012.07436, section 3.
#pragma once

#include <algorithm>
#include <cmath>

#include "heed/core/host_device.h"
#include "heed/core/isa.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// Number of keys sampled, or of queries chosen, of n: factor ceil(ln n), at least `factor` and at most n.
HEED_BOTH inline int64_t logarithmic(int64_t factor, int64_t n) {
  const double logarithm = std::ceil(std::log(static_cast<double>(std::max<int64_t>(n, 1))));
  return std::min(n, factor * std::max<int64_t>(1, static_cast<int64_t>(logarithm)));
}

/// How keys are sampled for the measure of a query.
struct Sampling {
  int64_t factor = 0;        ///< uses the first logarithmic(factor, keys) samples of a row; 0: all
  bool fractions = true;     ///< samples are fractions of the number of keys, in [0, 1); else indices of keys
  bool causal = false;       ///< query i samples keys j <= i only, and the mean is over the sample
  bool same_tokens = false;  ///< queries and keys are the same tokens, so padding holds for both
};

/// Index of the key that a sample selects among the first `num_keys` keys.
template <class T>
HEED_BOTH int64_t sampled_key(T sample, int64_t num_keys, const Sampling& sampling) {
  const auto j = sampling.fractions ? static_cast<int64_t>(sample * static_cast<T>(num_keys))
                                    : std::max<int64_t>(0, static_cast<int64_t>(sample)) % num_keys;
  return std::min(j, num_keys - 1);
}

/// measure [B, H, N] = max_u s_iu - sum_u s_iu / n with s_iu = q_i . k_j for sample u = key j, and n the
/// number of keys, or of samples with `causal`; -inf for padded queries and where there are no keys. samples
/// [N, U] in the dtype of q, shared by sequences and heads; keys at or past lengths[b] (i32 [B] or empty) are
/// not sampled. q [B, H, N, d], k [B, H, M, d] with last stride 1.
struct SparsityMeasure {
  template <Isa>
  static void cpu(const Tensor& q, const Tensor& k, const Tensor& samples, const Tensor& lengths,
                  const Sampling& sampling, const Tensor& measure);
  static void cuda(const Tensor& q, const Tensor& k, const Tensor& samples, const Tensor& lengths,
                   const Sampling& sampling, const Tensor& measure);
};

/// which [B, H, n] = the indices of the logarithmic(factor, T) greatest of the first T = lengths[b] numbers
/// (all N when empty) of measure [B, H, N], in ascending order, the first of equals; -1 where there are no
/// more. Numbers of -inf are never chosen.
struct TopQueries {
  template <Isa>
  static void cpu(const Tensor& measure, const Tensor& lengths, int64_t factor, const Tensor& which);
  static void cuda(const Tensor& measure, const Tensor& lengths, int64_t factor, const Tensor& which);
};

/// Selection that later numbers do not change, for causal attention: which [B, H, n] = the first 2
/// logarithmic(factor, T) indices where fewer than `factor` numbers before are at least as large; -1 where
/// there are no more. Shapes as in TopQueries.
struct CausalTopQueries {
  template <Isa>
  static void cpu(const Tensor& measure, const Tensor& lengths, int64_t factor, const Tensor& which);
  static void cuda(const Tensor& measure, const Tensor& lengths, int64_t factor, const Tensor& which);
};

/// bias [B, H, n, M] = 0 where key j <= which[b, h, i] (i32 [B, H, n]), else -inf.
struct PrefixBias {
  template <Isa>
  static void cpu(const Tensor& which, const Tensor& bias);
  static void cuda(const Tensor& which, const Tensor& bias);
};

}  // namespace heed::kernel
