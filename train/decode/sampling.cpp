// Samples tokens, and continues a prompt with them.
#include "heed/train/decode/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "heed/core/settings_in_errors.h"
#include "heed/train/decode/decoding_batch.h"
#include "heed/train/decode/next_token_scores.h"

namespace heed {

void SampleOptions::check() const {
  const auto refuse = [](const char* option, const char* field, double value, const char* legal) {
    fail(advice("generate: --", "sample: "), advice(option, field), " = ", value, ". It must be ", legal,
         ".");
  };
  if (!(temperature >= 0) || std::isinf(temperature))
    refuse("temperature", "temperature", temperature, "at least 0");
  if (top_k < 0) refuse("top-k", "top_k", static_cast<double>(top_k), "at least 0");
  if (!(top_p > 0 && top_p <= 1)) refuse("top-p", "top_p", top_p, "above 0 and at most 1");
  if (!(repetition_penalty > 0) || std::isinf(repetition_penalty))
    refuse("repetition-penalty", "repetition_penalty", repetition_penalty, "above 0; 1 is none");
  if (max_new_tokens < 0)
    refuse("max-new-tokens", "max_new_tokens", static_cast<double>(max_new_tokens), "at least 0");
}

int32_t draw_token(std::span<float> logits, const SampleOptions& options, std::span<const int32_t> context,
                   Rng& rng) {
  check_logits(advice("generate", "sample"), logits);
  if (options.repetition_penalty != 1) {
    const auto penalty = static_cast<float>(options.repetition_penalty);
    std::vector<bool> seen(logits.size());
    for (const int32_t id : context) {
      if (id < 0 || id >= std::ssize(logits))
        fail("sample: the context has the id ", id, ", and the model has a vocabulary of ", logits.size(),
             ". Use ids below it.");
      if (seen[static_cast<size_t>(id)]) continue;
      seen[static_cast<size_t>(id)] = true;
      float& logit = logits[static_cast<size_t>(id)];
      logit = logit > 0 ? logit / penalty : logit * penalty;
    }
  }
  const auto count = static_cast<int64_t>(logits.size());
  const int64_t k = options.temperature == 0 ? 1 : options.top_k > 0 ? std::min(options.top_k, count) : count;
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](int32_t a, int32_t b) {
    const float x = logits[static_cast<size_t>(a)], y = logits[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  });
  if (k == 1) return order[0];
  const double max_logit = logits[static_cast<size_t>(order[0])];
  std::vector<double> cumulative;  // sums of unnormalized probabilities, the most probable token first
  double total = 0;
  for (int64_t i = 0; i < k; ++i) {
    const double difference = logits[static_cast<size_t>(order[static_cast<size_t>(i)])] - max_logit;
    total += std::exp(difference / options.temperature);
    cumulative.push_back(total);
  }
  if (options.top_p < 1) {
    const auto last = std::ranges::lower_bound(cumulative, options.top_p * total);
    cumulative.resize(static_cast<size_t>(last - cumulative.begin()) + 1);
  }
  if (cumulative.size() == 1) return order[0];
  const auto drawn =
      std::ranges::upper_bound(cumulative, rng.uniform() * cumulative.back()) - cumulative.begin();
  return order[std::min(static_cast<size_t>(drawn), cumulative.size() - 1)];
}

std::vector<std::vector<int32_t>> sample_batch(const AutoregressiveModel& model,
                                               const std::vector<std::vector<int32_t>>& prompts,
                                               const SampleOptions& options, std::optional<Decoding> state) {
  options.check();
  if (options.on_token && prompts.size() > 1)
    fail("sample: on_token is for one prompt, and there are ", prompts.size(),
         ". Leave it out, or sample one prompt after the other.");
  const NoGrad no_grad;
  DecodingBatch batch("sample", model, prompts, options.stop_tokens, std::move(state),
                      DecodingBatch::WhenFull::restart);
  const std::vector<int64_t> limits = batch.limits(options.max_new_tokens, {});
  std::vector<std::vector<int32_t>> out(prompts.size());
  if (options.max_new_tokens == 0) return out;
  std::vector<Rng> draws;      // one generator per prompt
  std::vector<size_t> active;  // output of each row of the batch
  for (size_t i = 0; i < prompts.size(); ++i) {
    draws.emplace_back(options.seed + i);
    active.push_back(i);
  }
  while (!active.empty()) {
    std::vector<float> logits = batch.read().to_host();
    const size_t vocabulary = logits.size() / active.size();
    std::vector<size_t> unfinished;
    std::vector<int32_t> unfinished_rows;
    for (size_t row = 0; row < active.size(); ++row) {
      const size_t i = active[row];
      if (!batch.is_given(row)) {
        const int32_t chosen = draw_token(std::span(logits).subspan(row * vocabulary, vocabulary), options,
                                          batch.tokens(row), draws[i]);
        if (batch.is_stop(chosen)) continue;
        out[i].push_back(chosen);
        const bool goes_on = !options.on_token || options.on_token(chosen);
        if (!goes_on || std::ssize(out[i]) >= limits[i]) continue;
        batch.append(row, chosen);
      }
      unfinished.push_back(i);
      unfinished_rows.push_back(static_cast<int32_t>(row));
    }
    batch.reorder(unfinished_rows);
    active = std::move(unfinished);
  }
  return out;
}

std::vector<int32_t> sample(const AutoregressiveModel& model, const std::vector<int32_t>& prompt,
                            const SampleOptions& options, std::optional<Decoding> state) {
  return sample_batch(model, {prompt}, options, std::move(state))[0];
}

}  // namespace heed
