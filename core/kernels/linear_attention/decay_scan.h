// Causal sums with decay, and the delta rule, in chunks: used by retention, gated linear attention, DeltaNet
// and Mamba-2. Yang et al. 2023, arXiv 2312.06635; Yang et al. 2024, arXiv 2406.06484.
#pragma once

#include "heed/core/isa.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// Inputs of a scan, or their gradients. Each head has a state S [f, d] that decays and is written to,
///
///   S_t = a_t S_{t-1} + k_t u_t^T,     out_t = S_t^T q_t,     a_t = exp(log_decay_t) for each row of S,
///
/// where u_t is v_t, or with beta beta_t (v_t - (a_t S_{t-1})^T k_t), which replaces the value stored at k_t.
struct DecayInputs {
  Tensor q, k;       ///< [B, H, T, f]
  Tensor v;          ///< [B, H, T, d]
  Tensor log_decay;  ///< [B, H, T, 1 | f]; empty: no decay. At most 0 for sums that stay bounded
  Tensor beta;       ///< [B, H, T, 1]; empty: v is added as it is
  Tensor start;      ///< [B, H, f, d]; empty: zero
};

/// Writes out [B, H, T, d], end = S_T [B, H, f, d] (or empty), and with beta residual_t = v_t - (a_t
/// S_{t-1})^T k_t [B, H, T, d] (empty without beta). Last strides are 1.
struct DecayScan {
  template <Isa>
  static void cpu(const DecayInputs& x, const Tensor& out, const Tensor& end, const Tensor& residual);
  static void cuda(const DecayInputs& x, const Tensor& out, const Tensor& end, const Tensor& residual);
};

/// Writes dx, the gradients of DecayScan's inputs, from its residual, dout and dend (empty: zero). dx.beta is
/// empty where beta is; dx.log_decay and dx.start may be empty, and are where these are.
struct DecayScanBack {
  template <Isa>
  static void cpu(const DecayInputs& x, const Tensor& residual, const Tensor& dout, const Tensor& dend,
                  const DecayInputs& dx);
  static void cuda(const DecayInputs& x, const Tensor& residual, const Tensor& dout, const Tensor& dend,
                   const DecayInputs& dx);
};

}  // namespace heed::kernel
