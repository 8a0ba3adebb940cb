// Sampling: draws the next token by temperature, top-k, top-p and a repetition penalty.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "heed/core/random.h"
#include "heed/nn/transformer.h"

namespace heed {

/// Settings of sampling.
struct SampleOptions {
  double temperature = 0.8;  ///< divides the logits; 0: greedy
  int64_t top_k = 200;       ///< sample from the k most probable; 0: all
  double top_p = 1;          ///< sample from the smallest set of most probable tokens with this total; 1: all
  /// Divides positive logits of tokens in the context, multiplies negative ones; 1: none.
  double repetition_penalty = 1;
  int64_t max_new_tokens = 500;  ///< the text may end earlier, at the end token
  /// Names all five, with their help.
  void fields(Fields& f) {
    f("temperature", temperature, "divides the logits; 0: always the most probable token");
    f("top_k", top_k, "draw among this many most probable tokens; 0: all");
    f("top_p", top_p, "draw among the most probable tokens that together have this share; 1: all");
    f("repetition_penalty", repetition_penalty,
      "divides positive logits of tokens that are in the context already, multiplies negative ones; 1: none");
    f("max_new_tokens", max_new_tokens, "how many tokens to make");
  }
  /// A usage error that names an illegal value and the legal ones.
  void check() const;
};

/// Samples one token: applies the repetition penalty over `context` (Keskar et al. 2019, arXiv 1909.05858,
/// section 4.1), the temperature, top-k, then top-p (Holtzman et al. 2020, arXiv 1904.09751, section 3.1).
/// Ties go to the smaller id. Uses one number of `rng`, or none when only one token is left. Changes the
/// logits [V].
int32_t draw_token(std::span<float> logits, const SampleOptions& options, std::span<const int32_t> context,
                   Rng& rng);

/// Continues a prompt by sampling; calls `out` with each new token, and stops when it returns false. When the
/// context has `max_length` tokens, it is cut to the newest half.
void sample(const DecoderOnly& model, std::vector<int32_t> prompt, int64_t max_length,
            const SampleOptions& options, Rng& rng, const std::function<bool(int32_t)>& out);

}  // namespace heed
