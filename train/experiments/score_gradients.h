// The derivative of an attention's outputs by its scores, beside the bound that FAST prints for it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "heed/attention/base/key_value_cache.h"

namespace heed {

/// Weights as a function f of scores s = q^ . k^, and how queries and keys become q^ and k^: softmax, where f
/// is exp, and Fastmax of degree p, where f(s) = sum over l = 0 to p of s^l / l! (FAST, Gerami et al. 2024,
/// equations 5 to 8).
class ScoreWeighting {
 public:
  /// `spec`: softmax, or fastmax with the options p (1 or 2) and normalise alone. Fault::internal for others.
  explicit ScoreWeighting(const std::string& spec);
  double weight(double score) const;  ///< f(s)
  double slope(double score) const;   ///< f'(s)
  /// A number that may be subtracted from all of these scores without a change of f / g and f' / g: the
  /// largest score where f is exp, which then does not overflow; else 0.
  double shift(std::span<const double> scores) const;
  /// The scores [Tq, Tk] of a head's queries [Tq, d] and keys [Tk, d].
  std::vector<double> scores(std::vector<double> queries, std::vector<double> keys, int64_t d) const;

 private:
  void normalise(std::vector<double>& x, int64_t d) const;
  int64_t degree_ = 0;     // the degree of the polynomial, or 0 where f is exp
  std::string normalise_;  // the option `normalise` of the spec
};

/// Largest derivatives of outputs o_ij = sum over l of f(s_il) v_lj / g_i, g_i = sum over l of f(s_il), by
/// scores: |dO_ij / ds_il| = |f'(s_il)| |v_lj - o_ij| / |g_i|. Each is divided by the largest |v| that the
/// query sees, and by the printed bound for the n keys that it sees, 10 / (2 n + 3): 1 is as much as that
/// bound allows.
struct ScoreGradients {
  double largest = 0;  ///< largest derivative
  double by_scores =
      0;  ///< largest 2 |f'(s_il)| / |g_i|, which no derivative exceeds where f is not negative
  double num_above = 0;  ///< number of pairs (query, key) with a derivative above 1
  double num_pairs = 0;  ///< number of pairs of a query and a key that it sees
  double min_score = 0;  ///< smallest score
  double max_score = 0;  ///< largest score

  /// Adds the pairs of heads q [B, H, T, d], k and v alike; `causal`: a query sees the keys up to its own.
  void add(const ScoreWeighting& f, const Heads& heads, bool causal);
};

}  // namespace heed
