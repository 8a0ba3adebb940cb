// Decoding: greedy, beam search and sampling, one token at a time with a cache.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "heed/core/random.h"
#include "heed/nn/transformer.h"
#include "heed/train/config/config.h"

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

/// Greedy decoding: the most probable token at each step, for all rows at once; finished rows leave the
/// batch. longest[i] is the maximum number of tokens of row i.
std::vector<Hypothesis> greedy(const AutoregressiveModel& model, Decoding state,
                               const std::vector<int64_t>& longest, const DecodeIds& ids);

/// Beam search: for each row the best of `options.beam` finished hypotheses, by log probability over
/// ((5 + length) / 6)^alpha (Wu et al. 2016, arXiv 1609.08144, equation 14). `longest` as in greedy().
std::vector<Hypothesis> beam_search(const AutoregressiveModel& model, Decoding state,
                                    const std::vector<int64_t>& longest, const DecodeIds& ids,
                                    const DecodeOptions& options);

/// Settings of sampling.
struct SampleOptions {
  double temperature = 0.8;  ///< divides the logits; 0: greedy
  int64_t top_k = 200;       ///< sample from the k most probable; 0: all
  double top_p = 1;          ///< sample from the smallest set of most probable tokens with this total; 1: all
  double repetition_penalty = 1;
  int64_t max_new_tokens = 500;
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
