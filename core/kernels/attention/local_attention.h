// Attention to the keys near a centre that each query has of its own: time and memory follow the window.
#pragma once

#include "heed/core/isa.h"
#include "heed/core/tensor.h"

namespace heed::kernel {

/// Which keys j are in the window around a centre p.
enum class WindowCentre {
  real,   ///< |j - p| <= half_width
  floor,  ///< |j - floor(p)| <= half_width
};

/// Where the Gaussian exp(-(j - p)^2 / (2 sigma^2)) is applied.
enum class Gauss {
  none,
  post,       ///< multiplies the weights, which are not normalised again: rows sum to at most 1
  pre_score,  ///< multiplies the scores before the softmax
};

/// Settings of a call. Mask and lengths as in AttentionParams.
struct LocalParams {
  double scale = 1;
  int64_t half_width = 10;  ///< half width of the window
  double sigma = 5;
  WindowCentre window = WindowCentre::real;
  Gauss gauss = Gauss::post;
  bool causal = false;
  int64_t first_query = 0;  ///< position of query 0 among the keys
  Tensor key_lengths = {};  ///< i32 [B] or empty
};

/// out_i = sum over the keys j in the window of query i of w_ij v_j, with w_ij the softmax of scale q_i .
/// k_j, multiplied by the Gaussian where Gauss has it. Luong et al. 2015, arXiv 1508.04025, equations 9
/// and 10. q [B, H, Tq, d], k [B, H, Tk, d], v [B, H, Tk, dv], out [B, H, Tq, dv], each of last stride 1;
/// centre [B, H, Tq], contiguous. A query without keys gets zeros.
struct LocalAttention {
  template <Isa>
  static void cpu(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& centre,
                  const LocalParams& params, const Tensor& out);
  static void cuda(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& centre,
                   const LocalParams& params, const Tensor& out);
};

/// Tensors of LocalAttentionBack.
struct LocalAttentionBackTensors {
  Tensor q, k, v, centre;  ///< as LocalAttention read them
  Tensor dout;             ///< [B, H, Tq, dv]
  Tensor dq, dk, dv;       ///< written: as q, k, v
  Tensor dcentre;          ///< written: [B, H, Tq]
};

/// Gradients of LocalAttention; it recomputes the weights. The window has no gradient: it is a step function.
struct LocalAttentionBack {
  template <Isa>
  static void cpu(const LocalAttentionBackTensors& t, const LocalParams& params);
  static void cuda(const LocalAttentionBackTensors& t, const LocalParams& params);
};

}  // namespace heed::kernel
