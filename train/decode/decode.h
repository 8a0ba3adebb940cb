// From a model to outputs, one token at a time, with memory.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/random.h"
#include "nn/transformer.h"
#include "train/config.h"

namespace heed {

/// What decoding has to know of the vocabulary.
struct DecodeIds {
  int32_t start = 2, end = 3;
  std::vector<int32_t> forbidden;  ///< never produced: padding, unknown
};

/// One output sequence, without start and end, and its log probability (normalised by length for beams).
struct Hypothesis {
  std::vector<int32_t> ids;
  double score = 0;
};

/// The most probable token at each step, for all rows at once; rows that have ended leave the batch.
/// longest[i] is the most tokens of row i.
std::vector<Hypothesis> greedy(const Generator& model, Decoding state, const std::vector<int64_t>& longest,
                               const DecodeIds& ids);

/// Beam search: the best finished of `options.beam` hypotheses for each row, by log probability over
/// ((5 + length) / 6)^alpha (Wu et al. 2016, arXiv 1609.08144, equation 14).
std::vector<Hypothesis> beam_search(const Generator& model, Decoding state,
                                    const std::vector<int64_t>& longest, const DecodeIds& ids,
                                    const DecodeOptions& options);

/// How tokens are drawn.
struct SampleOptions {
  double temperature = 0.8;  ///< 0: the most probable
  int64_t top_k = 200;       ///< only the k most probable; 0: all
  double top_p = 1;          ///< only the most probable that together have this share; 1: all
  double repetition_penalty = 1;
  int64_t tokens = 500;
  void fields(Fields& f) {
    f("temperature", temperature, "divides the logits; 0: always the most probable token");
    f("top_k", top_k, "draw among this many most probable tokens; 0: all");
    f("top_p", top_p, "draw among the most probable tokens that together have this share; 1: all");
    f("repetition_penalty", repetition_penalty,
      "divides positive logits of tokens that are in the context already, multiplies negative ones; 1: none");
    f("tokens", tokens, "how many tokens to make");
  }
  /// Fails naming the value and the legal ones.
  void check() const;
};

/// Draws one token: the repetition penalty over `context` (Keskar et al. 2019, arXiv 1909.05858,
/// section 4.1), the temperature, the `top_k` most probable, and of those the fewest that have the share
/// `top_p` (Holtzman et al. 2020, arXiv 1904.09751, section 3.1). Ties go to the smaller id. One draw of
/// `rng`, or none where only one token is left. The logits [V] are changed.
int32_t draw_token(std::span<float> logits, const SampleOptions& options, std::span<const int32_t> context,
                   Rng& rng);

/// Continues a prompt by drawing from the model; each token is handed to `out` as it is made, and drawing
/// stops when it returns false. The context is cut to the newest half of `max_length` tokens whenever it is
/// full.
void sample(const DecoderOnly& model, std::vector<int32_t> prompt, int64_t max_length,
            const SampleOptions& options, Rng& rng, const std::function<bool(int32_t)>& out);

}  // namespace heed
