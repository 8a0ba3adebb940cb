// Which queries deserve all keys: a measure on sampled scores, and choices that look back only. Zhou et al.
// 2021, "Informer", arXiv 2012.07436, section 3.
#pragma once

#include "core/isa.h"
#include "core/tensor.h"

namespace heed::kernel {

/// How queries are measured.
struct Sampling {
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

/// which [B, H, n] = the first n places of measure [B, H, N] that fewer than `rank` places before them reach
/// or surpass, -1 where there are no more: a choice that later numbers do not change.
struct Records {
  template <Isa>
  static void cpu(const Tensor& measure, int64_t rank, const Tensor& which);
  static void cuda(const Tensor& measure, int64_t rank, const Tensor& which);
};

/// bias [B, H, n, M] = 0 where key j <= which[b, h, i] (i32 [B, H, n]), else -inf.
struct LookBack {
  template <Isa>
  static void cpu(const Tensor& which, const Tensor& bias);
  static void cuda(const Tensor& which, const Tensor& bias);
};

}  // namespace heed::kernel
