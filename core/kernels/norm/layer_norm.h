// Layer normalisation in one pass. Ba et al. 2016, arXiv 1607.06450.
#pragma once

#include "core/isa.h"
#include "core/tensor.h"

namespace heed::kernel {

/// How a row is scaled: `variance` divides by sqrt(population variance + epsilon), as everybody does;
/// `deviation` by (sample deviation + epsilon), as the published opus_books recipe does.
enum class NormScale { variance, deviation };

/// y = gain (x - mean) rstd + bias over the last axis; x [N, d], gain and bias [d] (bias may be empty), mean
/// and rstd [N] are kept for the gradient.
struct LayerNorm {
  template <Isa>
  static void cpu(const Tensor& x, const Tensor& gain, const Tensor& bias, double epsilon, NormScale scale,
                  const Tensor& y, const Tensor& mean, const Tensor& rstd);
  static void cuda(const Tensor& x, const Tensor& gain, const Tensor& bias, double epsilon, NormScale scale,
                   const Tensor& y, const Tensor& mean, const Tensor& rstd);
};

/// dx [N, d], dgain and dbias [d] (dbias may be empty), from what LayerNorm kept.
struct LayerNormBack {
  template <Isa>
  static void cpu(const Tensor& x, const Tensor& gain, const Tensor& mean, const Tensor& rstd, double epsilon,
                  NormScale scale, const Tensor& dy, const Tensor& dx, const Tensor& dgain,
                  const Tensor& dbias);
  static void cuda(const Tensor& x, const Tensor& gain, const Tensor& mean, const Tensor& rstd,
                   double epsilon, NormScale scale, const Tensor& dy, const Tensor& dx, const Tensor& dgain,
                   const Tensor& dbias);
};

}  // namespace heed::kernel
