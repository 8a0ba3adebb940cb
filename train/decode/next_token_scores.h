// Logits and log probabilities of the next token, on the host, and checks of them.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "heed/nn/transformer.h"

namespace heed {

/// One output sequence without its prompt and the token that ended it, and its log probability (for beams
/// divided by the length penalty).
struct Hypothesis {
  std::vector<int32_t> ids;  ///< new tokens
  double score = 0;          ///< log probability in nats
};

/// The log probability of a forbidden token.
constexpr float impossible = -std::numeric_limits<float>::infinity();

/// Whether forbidden tokens have a share of the probability when that of the others is computed.
enum class Forbidden { no_share, keep_share };

/// Logits and log probabilities [rows, V] of the next token, on the host; forbidden tokens have -inf.
class NextTokenScores {
 public:
  /// From the logits [rows, V] of a model. Negative forbidden ids are none. Fails for those of V and above,
  /// and as check_logits() does. `function` begins errors.
  NextTokenScores(const std::string& function, const Tensor& model_logits,
                  const std::vector<int32_t>& forbidden, Forbidden share = Forbidden::no_share);
  /// [vocabulary] logits of a row.
  const float* logits(int64_t row) const { return logits_.data<float>() + row * vocabulary; }
  /// [vocabulary] log probabilities of a row, in nats.
  const float* log(int64_t row) const { return log_.data<float>() + row * vocabulary; }

  int64_t vocabulary = 0;  ///< V, the number of token ids

 private:
  Tensor logits_, log_;
};

/// Fails unless one row of logits [V] tells which token is probable: Fault::numeric for NaN and +inf, and for
/// -inf alone Fault::usage. `function` begins the error.
void check_logits(const std::string& function, std::span<const float> logits);

/// The maximum of x[0, count).
float largest(const float* x, int64_t count);

}  // namespace heed
