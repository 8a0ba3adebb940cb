// Copies the scores of the next token to the host.
#include "heed/train/decode/next_token_scores.h"

#include <algorithm>

#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/launch.h"
#include "heed/core/settings_in_errors.h"

namespace heed {
namespace {

/// The tensor as f32 on the host; copied only if it is not that.
Tensor on_host(const Tensor& x) {
  if (x.device() == Device::cpu && x.dtype() == DType::f32) return x;
  return Tensor::of<float>(x.to_host(), x.shape(), Device::cpu);
}

}  // namespace

NextTokenScores::NextTokenScores(const std::string& function, const Tensor& model_logits,
                                 const std::vector<int32_t>& forbidden, Forbidden share) {
  const Tensor logits = contiguous(model_logits);
  vocabulary = logits.extent(1);
  const bool keeps_share = share == Forbidden::keep_share;
  if (keeps_share) log_ = log_softmax(logits);
  for (const int32_t id : forbidden) {
    if (id < 0) continue;  // -1: the tokenizer has no such token
    if (id >= vocabulary)
      fail(function, ": forbidden_tokens has the id ", id, ", and the model has a vocabulary of ", vocabulary,
           ". Use ids below it.");
    launch<kernel::Fill>(logits.device(), view::slice(logits, 1, id, id + 1), impossible);
    if (keeps_share) launch<kernel::Fill>(log_.device(), view::slice(log_, 1, id, id + 1), impossible);
  }
  logits_ = on_host(logits);
  for (int64_t row = 0; row < logits_.extent(0); ++row)
    check_logits(function, {this->logits(row), static_cast<size_t>(vocabulary)});
  log_ = on_host(keeps_share ? log_ : log_softmax(logits));
}

void check_logits(const std::string& function, std::span<const float> logits) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  bool all_finite = true;  // -inf is a probability of 0
  for (const float logit : logits) all_finite &= logit < infinity;
  if (!all_finite) {
    const float bad = *std::ranges::find_if(logits, [](float logit) { return !(logit < infinity); });
    fail(Fault::numeric, function, ": the model gave a logit of ", bad, ". ",
         advice("Take an earlier checkpoint: --checkpoint.", "Take an earlier checkpoint."));
  }
  if (largest(logits.data(), std::ssize(logits)) == impossible)
    fail(function, ": every token has a logit of -inf, or is forbidden. Allow one.");
}

float largest(const float* x, int64_t count) {
  constexpr int64_t lanes = 16;  // independent maxima hide the latency of comparisons
  float maxima[lanes];
  std::fill_n(maxima, lanes, impossible);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    for (int64_t lane = 0; lane < lanes; ++lane)
      maxima[lane] = x[i + lane] > maxima[lane] ? x[i + lane] : maxima[lane];
  }
  for (; i < count; ++i) maxima[0] = std::max(maxima[0], x[i]);
  return *std::max_element(maxima, maxima + lanes);
}

}  // namespace heed
