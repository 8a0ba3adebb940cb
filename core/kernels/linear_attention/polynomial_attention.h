// Attention whose weights are a polynomial of q . k, computed through sums over monomials in time linear in
// the length. Gerami et al. 2024, "FAST: factorizable attention for speeding up transformers", arXiv
// 2402.07901; the causal form and the gradients are exact and need only q, k, v, the output and one sum per
// query.
#pragma once

#include <cstdint>
#include <vector>

#include "heed/core/isa.h"
#include "heed/core/packed_sequences.h"
#include "heed/core/random.h"

namespace heed::kernel {

/// The map that each query and key goes through before the monomials.
enum class FeatureMap {
  none,
  standard,  ///< (x - mean) / sqrt(variance + epsilon) over the width
  unit,      ///< x / sqrt(|x|^2 + epsilon^2)
  positive   ///< elu(x) + 1
};

/// Whether a token is a key or a query: only features of queries carry the weights of the polynomial.
enum class TokenRole { key, query };

/// Which algorithm computes the sums.
enum class PolynomialPath {
  automatic,  ///< the cheaper one
  factored,   ///< over monomials: linear in the length
  dense       ///< over pairs, tile by tile: quadratic in the length, for any degree
};

/// What the dropout of a call drops. Gerami et al. 2024, section 2.4, name all three.
enum class PolynomialDropout {
  monomials,  ///< monomials of degree 2 and more of each query and key: the paper's quadratic dropout
  entries,    ///< entries of each mapped query and key: its standard dropout
  tokens      ///< whole mapped queries and keys, whose scores become 0: its 1D dropout
};

/// Settings of a call. With the score s_ij = scale m(q_i) . m(k_j), m being the feature map, and the weight
/// f(s) = a_0 + a_1 s + ... + a_p s^p: out_i = sum_j f(s_ij) v_j / (sum_j f(s_ij) + epsilon).
struct PolynomialParams {
  std::vector<double> coefficients = {1, 1};  ///< a_0 to a_p
  FeatureMap prepare = FeatureMap::none;      ///< applied to each query and key
  double prepare_epsilon = 1e-6;              ///< epsilon of the feature map
  double scale = 1;
  bool causal = false;      ///< query i sees keys up to i, and all keys summed in `start`
  Tensor key_lengths = {};  ///< i32 [B]: keys from this position on are hidden; empty: none is
  int64_t first_key = 0;    ///< position of key 0 for key_lengths
  double epsilon = 0;       ///< added to the sum of weights
  double guard = 0;    ///< least magnitude of the divisor: a smaller one becomes the guard, with its sign
  double dropout = 0;  ///< probability with which each item that `drops` names is dropped
  PolynomialDropout drops = PolynomialDropout::monomials;
  Draw draw = {};
  PolynomialPath path = PolynomialPath::automatic;
  int64_t chunk = 0;  ///< tokens per chunk, within which the CPU computes pair by pair; 0: automatic
  PackedSequences queries = {};  ///< how q, out and their gradients are packed; empty: they are padded
  PackedSequences keys = {};     ///< how k, v and their gradients are packed; empty: they are padded
};

/// Number of features: monomials of degree 0 to p in d variables, without degree 0 where a_0 = 0 and without
/// degree 1 where a_1 = 0.
inline int64_t num_polynomial_features(int64_t d, const std::vector<double>& coefficients) {
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

/// True where dropout drops monomials: the weight of a pair is then no polynomial of its score.
inline bool drops_monomials(const PolynomialParams& params) {
  return params.dropout > 0 && params.drops == PolynomialDropout::monomials;
}

/// True where a call takes the dense path: where it is cheaper, unless `path` decides. Degree 1 and dropout
/// of monomials always use monomials.
inline bool prefers_dense_polynomial(int64_t keys, int64_t d, const PolynomialParams& params) {
  if (params.path != PolynomialPath::automatic) return params.path == PolynomialPath::dense;
  return !drops_monomials(params) && params.coefficients.size() > 2 &&
         keys <= num_polynomial_features(d, params.coefficients);
}

/// Inputs of PolynomialAttention, or their gradients. Last strides are 1. Packed queries are q [1, H, N, d],
/// and Tq is then the length of the longest sequence; packed keys are k and v [1, H, N, d].
struct PolynomialInputs {
  Tensor q;      ///< [B, H, Tq, d]
  Tensor k, v;   ///< [B, H, Tk, d] and [B, H, Tk, dv]; may be empty where there is a start
  Tensor start;  ///< [B, H, f, dv + 1]: sums over earlier keys, made by PolynomialSums; or empty
};

/// Writes out [B, H, Tq, dv] (last stride 1) and sums [B, H, Tq] (contiguous): the sum of each query's
/// weights, without epsilon and guard. A query without keys gets zeros. A factored call with keys is causal
/// and has Tq = Tk.
struct PolynomialAttention {
  template <Isa>
  static void cpu(const PolynomialInputs& x, const PolynomialParams& params, const Tensor& out,
                  const Tensor& sums);
  static void cuda(const PolynomialInputs& x, const PolynomialParams& params, const Tensor& out,
                   const Tensor& sums);
};

}  // namespace heed::kernel
