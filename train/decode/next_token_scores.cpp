// Copies the scores of the next token to the host.
#include "heed/train/decode/next_token_scores.h"

#include <algorithm>

#include "heed/core/kernels/elementwise/copy.h"
#include "heed/core/launch.h"

namespace heed {
namespace {

/// The tensor as f32 on the host; copied only if it is not that.
Tensor on_host(const Tensor& x) {
  if (x.device() == Device::cpu && x.dtype() == DType::f32) return x;
  return Tensor::of<float>(x.to_host(), x.shape(), Device::cpu);
}

}  // namespace

NextTokenScores::NextTokenScores(const Tensor& model_logits, const std::vector<int32_t>& forbidden) {
  const Tensor logits = contiguous(model_logits);
  vocabulary = logits.extent(1);
  for (const int32_t id : forbidden) {
    if (id < 0 || id >= vocabulary) continue;  // -1: the tokenizer has no such token
    launch<kernel::Fill>(logits.device(), view::slice(logits, 1, id, id + 1), impossible);
  }
  logits_ = on_host(logits);
  log_ = on_host(log_softmax(logits));
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
