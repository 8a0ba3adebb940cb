// Selects the queries that attend to all keys, by a measure on sampled scores; also causally. Zhou et al.
// 2021, "Informer", arXiv 2012.07436, section 3.
#pragma once

#include <algorithm>
#include <cmath>

#include "heed/core/host_device.h"
#include "heed/core/isa.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// factor ceil(ln n), at least factor and at most n: how many of n are sampled or chosen.
HEED_BOTH inline int64_t logarithmic(int64_t factor, int64_t n) {
  const double logarithm = std::ceil(std::log(static_cast<double>(std::max<int64_t>(n, 1))));
  return std::min(n, factor * std::max<int64_t>(1, static_cast<int64_t>(logarithm)));
}

/// How queries are measured.
struct Sampling {
  int64_t factor = 0;        ///< the first logarithmic(factor, keys) samples of a row count; 0: all
  bool fractions = true;     ///< samples lie in [0, 1) of the keys there are; else they are numbers of keys
  bool look_back = false;    ///< query i samples keys j <= i only, and the mean is over the sample
  bool same_tokens = false;  ///< queries are padded where keys are
};

/// measure [B, H, N] = max_u s_iu - sum_u s_iu / (number of keys), s_iu = q_i . k_j for sampled j; -inf for
/// padded queries and where there are no keys. samples [N, U] in the dtype of q, shared by sequences and
/// heads; keys at or past lengths[b] (i32 [B] or empty) are not sampled. q [B, H, N, d], k [B, H, M, d] with
/// last stride 1.
struct SampledSpread {
  template <Isa>
  static void cpu(const Tensor& q, const Tensor& k, const Tensor& samples, const Tensor& lengths,
                  const Sampling& sampling, const Tensor& measure);
  static void cuda(const Tensor& q, const Tensor& k, const Tensor& samples, const Tensor& lengths,
                   const Sampling& sampling, const Tensor& measure);
};

/// which [B, H, n] = the places of the logarithmic(factor, T) greatest of the first T = lengths[b] numbers
/// (all N when empty) of measure [B, H, N], in rising order, the first among equal ones; -1 where there are
/// no more. What is -inf is never chosen.
struct Standouts {
  template <Isa>
  static void cpu(const Tensor& measure, const Tensor& lengths, int64_t factor, const Tensor& which);
  static void cuda(const Tensor& measure, const Tensor& lengths, int64_t factor, const Tensor& which);
};

/// The same by a choice that later numbers do not change: a place is chosen if fewer than `factor` before it
/// reach or surpass it, the first 2 logarithmic(factor, T) of them.
struct Records {
  template <Isa>
  static void cpu(const Tensor& measure, const Tensor& lengths, int64_t factor, const Tensor& which);
  static void cuda(const Tensor& measure, const Tensor& lengths, int64_t factor, const Tensor& which);
};

/// bias [B, H, n, M] = 0 where key j <= which[b, h, i] (i32 [B, H, n]), else -inf.
struct LookBack {
  template <Isa>
  static void cpu(const Tensor& which, const Tensor& bias);
  static void cuda(const Tensor& which, const Tensor& bias);
};

}  // namespace heed::kernel
