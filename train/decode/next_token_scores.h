// Logits and log probabilities of the next token, on the host, for greedy decoding and beam search.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "heed/nn/transformer.h"

namespace heed {

/// Token ids that decoding needs.
struct DecodeIds {
  int32_t start = 2;               ///< token before the first token of an output
  int32_t end = 3;                 ///< token that ends an output
  std::vector<int32_t> forbidden;  ///< tokens that are never generated: padding, unknown
};

/// One output sequence without start and end tokens, and its log probability (for beams divided by the length
/// penalty).
struct Hypothesis {
  std::vector<int32_t> ids;  ///< tokens without start and end
  double score = 0;          ///< log probability in nats
};

/// The log probability of a forbidden token.
constexpr float impossible = -std::numeric_limits<float>::infinity();

/// Logits and log probabilities [rows, V] of the next token, on the host; forbidden tokens have -inf.
class NextTokenScores {
 public:
  /// Runs the model on the newest token of each row of `state`, and adds it to the state.
  NextTokenScores(const AutoregressiveModel& model, const std::vector<int32_t>& last_tokens, Decoding& state,
                  const DecodeIds& ids);
  /// [vocabulary] logits of a row.
  const float* logits(int64_t row) const { return logits_.data<float>() + row * vocabulary; }
  /// [vocabulary] log probabilities of a row, in nats.
  const float* log(int64_t row) const { return log_.data<float>() + row * vocabulary; }

  int64_t vocabulary = 0;  ///< V, the number of token ids

 private:
  Tensor logits_, log_;
};

/// The maximum of x[0, count).
float largest(const float* x, int64_t count);

}  // namespace heed
