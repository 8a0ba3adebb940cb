// Sampling: draws the next token by temperature, top-k, top-p and a repetition penalty.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
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
  int64_t max_new_tokens = 500;           ///< maximum number of tokens that are made
  uint64_t seed = 1;                      ///< seed of the draws; prompt i of a batch has seed + i
  std::vector<int32_t> stop_tokens = {};  ///< tokens that end an output, and are no part of it
  /// Called with each new token as it is made; the output ends where it returns false. For one prompt only.
  std::function<bool(int32_t)> on_token = {};
  /// Names the five numbers that are settings of `heed generate`, with their help.
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
/// logits [V]. Fails for those that check_logits() refuses.
int32_t draw_token(std::span<float> logits, const SampleOptions& options, std::span<const int32_t> context,
                   Rng& rng);

/// Continues a prompt by sampling, and returns the new tokens. Any model that implements AutoregressiveModel
/// will do. Without `state` it begins at model.start(), and a sequence that outgrows model.max_length() is
/// cut to its newest half; with one, such as model.start(encoded, lengths) of a translator, it ends there.
/// Negative stop tokens are none. Fails for an empty prompt, illegal options and ids outside the vocabulary.
std::vector<int32_t> sample(const AutoregressiveModel& model, const std::vector<int32_t>& prompt,
                            const SampleOptions& options = {}, std::optional<Decoding> state = {});

/// sample() for several prompts at once, which may differ in length.
std::vector<std::vector<int32_t>> sample_batch(const AutoregressiveModel& model,
                                               const std::vector<std::vector<int32_t>>& prompts,
                                               const SampleOptions& options = {},
                                               std::optional<Decoding> state = {});

}  // namespace heed
