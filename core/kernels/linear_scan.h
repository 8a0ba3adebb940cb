// Causal sums of kernelized attention in chunks. Katharopoulos et al. 2020, arXiv 2006.16236, equations 9-12.
#pragma once

#include "core/isa.h"
#include "core/tensor.h"

namespace heed::kernel {

/// out_i = phi_q_i . S_i with S_i = start + sum over j <= i of phi_k_j v_j^T.
/// phi_q, phi_k [B, H, T, f], v [B, H, T, d], start [B, H, f, d] or empty, out [B, H, T, d]; last stride 1.
/// end [B, H, f, d] or empty receives S_T.
struct LinearScan {
  template <Isa>
  static void cpu(const Tensor& phi_q, const Tensor& phi_k, const Tensor& v, const Tensor& start,
                  const Tensor& out, const Tensor& end);
  static void cuda(const Tensor& phi_q, const Tensor& phi_k, const Tensor& v, const Tensor& start,
                   const Tensor& out, const Tensor& end);
};

/// Gradients (overwritten) of the call above from dout and dend (empty: zero); dstart may be empty.
struct LinearScanBack {
  template <Isa>
  static void cpu(const Tensor& phi_q, const Tensor& phi_k, const Tensor& v, const Tensor& start,
                  const Tensor& dout, const Tensor& dend, const Tensor& dphi_q, const Tensor& dphi_k,
                  const Tensor& dv, const Tensor& dstart);
  static void cuda(const Tensor& phi_q, const Tensor& phi_k, const Tensor& v, const Tensor& start,
                   const Tensor& dout, const Tensor& dend, const Tensor& dphi_q, const Tensor& dphi_k,
                   const Tensor& dv, const Tensor& dstart);
};

}  // namespace heed::kernel
