// Softmax of each layer's logits, and its most probable tokens.
#include "heed/train/decode/logit_lens.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "heed/core/error.h"

namespace heed {
namespace {

std::vector<double> softmax_of(std::span<const double> logits, const std::string& layer) {
  const double max_logit = *std::max_element(logits.begin(), logits.end());
  std::vector<double> out;
  double sum = 0;
  for (const double one : logits) {
    if (!std::isfinite(one))
      fail(Fault::numeric, "logit lens: the logits of ", layer, " are not finite. Take another checkpoint.");
    out.push_back(std::exp(one - max_logit));
    sum += out.back();
  }
  for (double& one : out) one /= sum;
  return out;
}

size_t largest_of(const std::vector<double>& all) {
  return static_cast<size_t>(std::max_element(all.begin(), all.end()) - all.begin());
}

LensCell lens_cell(const std::vector<double>& probabilities, size_t final_token, int64_t best,
                   const std::function<std::string(int32_t)>& piece) {
  LensCell cell{.best = {}, .final_probability = probabilities[final_token]};
  for (const double p : probabilities) cell.entropy -= p > 0 ? p * std::log(p) : 0;
  std::vector<int32_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), 0);
  const auto count = std::min<int64_t>(best, static_cast<int64_t>(order.size()));
  std::partial_sort(order.begin(), order.begin() + count, order.end(), [&](int32_t a, int32_t b) {
    const double left = probabilities[static_cast<size_t>(a)], right = probabilities[static_cast<size_t>(b)];
    return left != right ? left > right : a < b;
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
  std::vector<size_t> final_tokens;
  for (size_t at = logits.size(); at-- > 0;) {  // the last layer first: its tokens are asked of the others
    const Tensor& of = logits[at];
    const auto rows = static_cast<size_t>(of.extent(1)), words = static_cast<size_t>(of.extent(2));
    const std::vector<double> all = of.to_doubles();
    const std::string name = at == 0 ? "embedding" : text("layer ", at - 1);
    std::vector<LensCell> cells;
    for (size_t row = 0; row < rows; ++row) {
      const std::vector<double> probabilities = softmax_of(std::span(all).subspan(row * words, words), name);
      if (at + 1 == logits.size()) final_tokens.push_back(largest_of(probabilities));
      cells.push_back(lens_cell(probabilities, final_tokens[row], best, piece));
    }
    out.layers.insert(out.layers.begin(), name);
    out.cells.insert(out.cells.begin(), std::move(cells));
  }
  return out;
}

}  // namespace heed
