// What a model says of the next token, on the host, and what greedy decoding and beam search share.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "heed/nn/transformer.h"

namespace heed {

/// Token ids that decoding needs.
struct DecodeIds {
  int32_t start = 2, end = 3;
  std::vector<int32_t> forbidden;  ///< never generated: padding, unknown
};

/// One output sequence without start and end tokens, and its log probability (for beams divided by the length
/// penalty).
struct Hypothesis {
  std::vector<int32_t> ids;
  double score = 0;
};

/// The log probability of a token that may not be generated.
constexpr float impossible = -std::numeric_limits<float>::infinity();

/// Logits and log probabilities [rows, V] of the next token, on the host; forbidden tokens have -inf.
class NextScores {
 public:
  /// `last` is the newest token of each row of `state`.
  NextScores(const AutoregressiveModel& model, const std::vector<int32_t>& last, Decoding& state,
             const DecodeIds& ids);
  const float* logits(int64_t row) const { return logits_.data<float>() + row * vocabulary; }
  const float* log(int64_t row) const { return log_.data<float>() + row * vocabulary; }

  int64_t vocabulary = 0;

 private:
  Tensor logits_, log_;
};

/// The maximum of x[0, count).
float largest(const float* x, int64_t count);

}  // namespace heed
