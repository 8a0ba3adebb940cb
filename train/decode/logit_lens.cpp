// Probabilities, entropy and most probable tokens of each layer's logits.
#include "heed/train/decode/logit_lens.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "heed/core/error.h"

namespace heed {
namespace {

/// The softmax of logits. Fails for logits that are not finite; `layer` names them.
std::vector<double> softmax_of(std::span<const double> logits, const std::string& layer) {
  const double max_logit = *std::max_element(logits.begin(), logits.end());
  std::vector<double> probabilities;
  double sum = 0;
  for (const double logit : logits) {
    if (!std::isfinite(logit))
      fail(Fault::numeric, "logit lens: the logits of ", layer, " are not finite. Take another checkpoint.");
    probabilities.push_back(std::exp(logit - max_logit));
    sum += probabilities.back();
  }
  for (double& probability : probabilities) probability /= sum;
  return probabilities;
}

/// The lens of one layer at one position: entropy in nats, the `num_best` most probable tokens, and the
/// probability of the token that the last layer predicts.
LensCell lens_cell(const std::vector<double>& probabilities, size_t final_token, int64_t num_best,
                   const std::function<std::string(int32_t)>& piece) {
  LensCell cell{.best = {}, .final_probability = probabilities[final_token]};
  for (const double p : probabilities) cell.entropy -= p > 0 ? p * std::log(p) : 0;
  std::vector<int32_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), 0);
  const auto count = std::min<int64_t>(num_best, static_cast<int64_t>(order.size()));
  std::partial_sort(order.begin(), order.begin() + count, order.end(), [&](int32_t a, int32_t b) {
    const double p_a = probabilities[static_cast<size_t>(a)], p_b = probabilities[static_cast<size_t>(b)];
    return p_a != p_b ? p_a > p_b : a < b;
  });
  for (int64_t i = 0; i < count; ++i) {
    const int32_t id = order[static_cast<size_t>(i)];
    cell.best.push_back({piece(id), probabilities[static_cast<size_t>(id)]});
  }
  return cell;
}

}  // namespace

LensView lens_view(const std::vector<Tensor>& logits, const std::function<std::string(int32_t)>& piece,
                   int64_t best) {
  LensView out;
  std::vector<size_t> final_tokens;  // most probable token of the last layer at each position
  for (size_t layer = logits.size();
       layer-- > 0;) {  // the last layer comes first, since it sets final_tokens
    const auto length = static_cast<size_t>(logits[layer].extent(1)),
               vocabulary = static_cast<size_t>(logits[layer].extent(2));
    const std::vector<double> all = logits[layer].to_doubles();
    const std::string name = layer == 0 ? "embedding" : text("layer ", layer - 1);
    std::vector<LensCell> cells;
    for (size_t row = 0; row < length; ++row) {
      const std::vector<double> probabilities =
          softmax_of(std::span(all).subspan(row * vocabulary, vocabulary), name);
      if (layer + 1 == logits.size())
        final_tokens.push_back(
            static_cast<size_t>(std::ranges::max_element(probabilities) - probabilities.begin()));
      cells.push_back(lens_cell(probabilities, final_tokens[row], best, piece));
    }
    out.layers.insert(out.layers.begin(), name);
    out.cells.insert(out.cells.begin(), std::move(cells));
  }
  return out;
}

}  // namespace heed
