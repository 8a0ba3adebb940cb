// Samples tokens, and continues a prompt with them.
#include "heed/train/decode/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace heed {

void SampleOptions::check() const {
  const auto refuse = [](const char* name, double value, const char* legal) {
    fail("generate: --", name, " = ", value, ". It must be ", legal, ".");
  };
  if (!(temperature >= 0) || std::isinf(temperature)) refuse("temperature", temperature, "at least 0");
  if (top_k < 0) refuse("top-k", static_cast<double>(top_k), "at least 0");
  if (!(top_p > 0 && top_p <= 1)) refuse("top-p", top_p, "above 0 and at most 1");
  if (!(repetition_penalty > 0) || std::isinf(repetition_penalty))
    refuse("repetition-penalty", repetition_penalty, "above 0; 1 is none");
  if (max_new_tokens < 0) refuse("max-new-tokens", static_cast<double>(max_new_tokens), "at least 0");
}

int32_t draw_token(std::span<float> logits, const SampleOptions& options, std::span<const int32_t> context,
                   Rng& rng) {
  for (const float logit : logits) {
    if (std::isnan(logit))
      fail(Fault::numeric,
           "generate: the model's scores are not numbers. Take an earlier checkpoint: --checkpoint.");
  }
  if (options.repetition_penalty != 1) {
    const auto penalty = static_cast<float>(options.repetition_penalty);
    std::vector<bool> seen(logits.size());
    for (const int32_t id : context) {
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

void sample(const DecoderOnly& model, std::vector<int32_t> prompt, int64_t max_length,
            const SampleOptions& options, Rng& rng, const std::function<bool(int32_t)>& out) {
  if (prompt.empty()) fail("generate: the prompt is empty. Give at least one token.");
  options.check();
  const NoGrad no_grad;
  std::vector<int32_t> context = std::move(prompt);
  Decoding state;
  std::vector<int32_t> unread;  // tokens that the model has not read
  for (int64_t num_new = 0; num_new < options.max_new_tokens; ++num_new) {
    if (num_new == 0 || static_cast<int64_t>(context.size()) > max_length) {
      const int64_t max_context = num_new == 0 ? max_length : std::max<int64_t>(max_length / 2, 1);
      if (static_cast<int64_t>(context.size()) > max_context)
        context.erase(context.begin(), context.end() - max_context);
      state = model.start();
      unread = context;
    }
    std::vector<float> logits =
        model.next(Tensor::of<int32_t>(unread, Shape{1, static_cast<int64_t>(unread.size())}), state)
            .to_host();
    const int32_t chosen = draw_token(logits, options, context, rng);
    context.push_back(chosen);
    unread = {chosen};
    if (!out(chosen)) return;
  }
}

}  // namespace heed
