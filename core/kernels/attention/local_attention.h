// Attention of each query to a window of keys around its centre: time and memory grow with the window.
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

/// Settings of a call. Causal mask and key lengths are those of AttentionParams.
struct LocalParams {
  double scale = 1;
  int64_t half_width = 10;  ///< half the width of the window, in keys
  double sigma = 5;         ///< deviation of the Gaussian, in keys
  WindowCentre window = WindowCentre::real;
  Gauss gauss = Gauss::post;
  bool causal = false;
  int64_t first_query = 0;  ///< position of query 0 among the keys
  Tensor key_lengths = {};  ///< i32 [B] or empty
};

/// out_i = sum_j w_ij v_j over the keys j in the window of query i, where w_ij is the softmax of scale q_i .
/// k_j with the Gaussian where Gauss applies it. Luong et al. 2015, arXiv 1508.04025, equations 9 and 10. q
/// [B, H, Tq, d], k [B, H, Tk, d], v [B, H, Tk, dv], out [B, H, Tq, dv], each of last stride 1; centre [B, H,
/// Tq], contiguous. A query without keys gets zeros.
struct LocalAttention {
  template <Isa>
  static void cpu(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& centre,
                  const LocalParams& params, const Tensor& out);
  static void cuda(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& centre,
                   const LocalParams& params, const Tensor& out);
};

/// Tensors of LocalAttentionBack.
struct LocalAttentionBackTensors {
  Tensor q, k, v, centre;  ///< inputs of LocalAttention
  Tensor dout;             ///< [B, H, Tq, dv]
  Tensor dq, dk, dv;       ///< written, in the shapes of q, k, v
  Tensor dcentre;          ///< written, [B, H, Tq]
};

/// Gradients of LocalAttention; it recomputes the weights. The window has no gradient: it is a step function.
struct LocalAttentionBack {
  template <Isa>
  static void cpu(const LocalAttentionBackTensors& t, const LocalParams& params);
  static void cuda(const LocalAttentionBackTensors& t, const LocalParams& params);
};

}  // namespace heed::kernel
