// Computes a loss once with all heads, and once without each.
#include "heed/attention/inspect/head_effects.h"

#include <algorithm>

namespace heed {

std::vector<HeadEffect> head_effects(Module& model,
                                     const std::function<double(const ForwardContext& context)>& loss,
                                     std::vector<ModelHead> heads, const HeadReplacement& by,
                                     const MeanOutputs* means) {
  const NoGrad no_grad;
  double whole = 0;
  const std::vector<ModelHead> all =
      heads_of_model(model, [&](const ForwardContext& context) { whole = loss(context); });
  if (heads.empty()) heads = all;
  for (const ModelHead& head : heads) {
    const auto is_head = [&](const ModelHead& other) {
      return other.module == head.module && other.head == head.head;
    };
    if (std::ranges::none_of(all, is_head))
      fail("head_effects: the model has no head '", head.name, "', head ", head.head,
           " of its attention. Take heads of heads_of_model().");
  }
  HeadAblation ablation(by, means);
  std::vector<HeadEffect> out;
  for (const ModelHead& head : heads) {
    ablation.replace({head});
    const double without = loss({.editor = &ablation});
    out.push_back({.head = head, .loss = without, .change = without - whole});
  }
  return out;
}

}  // namespace heed
