// Attention whose weights are a polynomial of q . k, through sums over monomials: time linear in the length.
// Gerami et al. 2024, "FAST: factorizable attention for speeding up transformers", arXiv 2402.07901; the
// causal form and the gradients are exact and keep nothing but q, k, v, the output and one sum a row.
#pragma once

#include <cstdint>
#include <vector>

#include "core/isa.h"
#include "core/random.h"

namespace heed::kernel {

/// What is done to each query and each key before they meet.
enum class Prepare {
  none,
  standard,  ///< (x - mean) / sqrt(variance + epsilon) over the width
  unit,      ///< x / sqrt(|x|^2 + epsilon^2)
  positive   ///< elu(x) + 1
};

/// How the sums are made.
enum class FastmaxPath {
  automatic,  ///< the cheaper one
  factored,   ///< over monomials: linear in the length
  dense       ///< over pairs, tile by tile: quadratic in the length, whatever the degree
};

/// What a call fixes besides q, k, v. With s = scale (prepared q) . (prepared k):
/// out_i = sum_j f(s_ij) v_j / (sum_j f(s_ij) + epsilon), f(s) = a_0 + a_1 s + ... + a_p s^p.
struct FastmaxTerms {
  std::vector<double> coefficients = {1, 1};  ///< a_0 to a_p
  Prepare prepare = Prepare::none;
  double prepare_epsilon = 1e-6;
  double scale = 1;
  bool causal = false;      ///< query i sees key i and those before it, and all that `start` holds
  Tensor key_lengths = {};  ///< i32 [B]; keys at or past it are not seen; empty: all are
  int64_t first_key = 0;    ///< the number of key 0 among those that key_lengths counts
  double epsilon = 0;       ///< added to the sum of weights
  double guard = 0;         ///< sums nearer to zero are moved out to it, keeping their sign
  double dropout = 0;       ///< of the entries of degree 2 and more of both factors
  Draw draw = {};
  FastmaxPath path = FastmaxPath::automatic;
  int64_t chunk = 0;  ///< queries that are weighed pair by pair at a time; 0: chosen
};

/// Monomials that are kept: those of degree 0 to p in d variables, without that of degree 0 where a_0 = 0 and
/// those of degree 1 where a_1 = 0.
inline int64_t fastmax_features(int64_t d, const std::vector<double>& coefficients) {
  int64_t total = 0;
  double of_degree = 1;  // (d + l - 1 choose l), exact below 2^53
  for (size_t l = 0; l < coefficients.size(); ++l) {
    if (l > 0)
      of_degree = of_degree * static_cast<double>(d + static_cast<int64_t>(l) - 1) / static_cast<double>(l);
    if (of_degree > 1e15) return int64_t{1} << 50;
    if (l >= 2 || coefficients[l] != 0) total += static_cast<int64_t>(of_degree + 0.5);
  }
  return total;
}

/// True where pairs cost less than monomials. Of degree 1 monomials are always used.
inline bool fastmax_dense(int64_t keys, int64_t d, const FastmaxTerms& terms) {
  if (terms.path != FastmaxPath::automatic) return terms.path == FastmaxPath::dense;
  return terms.dropout == 0 && terms.coefficients.size() > 2 &&
         keys <= fastmax_features(d, terms.coefficients);
}

/// q [B, H, Tq, d], k [B, H, Tk, d], v [B, H, Tk, dv], out [B, H, Tq, dv]: views whose last stride is 1.
/// start [B, H, f, dv + 1] or empty: sums over earlier keys, as FastmaxSums makes them. k and v may be empty
/// where there is a start. Factored calls with keys are causal, Tq = Tk. sums [B, H, Tq] (contiguous)
/// receives the sums of weights, without epsilon and guard. A query without keys gets zeros.
struct Fastmax {
  template <Isa>
  static void cpu(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& start,
                  const FastmaxTerms& terms, const Tensor& out, const Tensor& sums);
  static void cuda(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& start,
                   const FastmaxTerms& terms, const Tensor& out, const Tensor& sums);
};

}  // namespace heed::kernel
