// Runs the part of a model behind a receiver with what it reads exchanged, several edges in one batch.
#include "heed/attention/inspect/path_patching.h"

#include <algorithm>

#include "heed/autograd/ops.h"
#include "heed/core/counted_work.h"

namespace heed {

PathPatching::PathPatching(const ResidualGraph& graph, const ContrastPair& pair)
    : graph_(graph), pair_(pair) {
  check(pair, graph.model());
  const NoGrad no_grad;
  GraphTrace clean = graph.trace(pair.clean);
  const GraphTrace corrupted = graph.trace(pair.corrupted);
  clean_difference_ = logit_difference(graph.model(), clean.hidden, pair).item();
  corrupted_difference_ = logit_difference(graph.model(), corrupted.hidden, pair).item();
  changes_ = concat(corrupted.outputs, 0) - concat(clean.outputs, 0);
  streams_ = std::move(clean.streams);
}

std::vector<double> PathPatching::effects_of_changes(size_t receiver, const Tensor& changes) const {
  const NoGrad no_grad;
  const int64_t branch = graph_.receivers()[receiver].branch();
  const Tensor stream = contiguous(expand(streams_[static_cast<size_t>(branch)], changes.shape()));
  const Tensor hidden = graph_.hidden(stream, branch, [&](size_t reader, const Tensor& x) {
    return reader == receiver ? x + changes : Tensor();
  });
  std::vector<double> effects = logit_difference(graph_.model(), hidden, pair_).to_doubles();
  for (double& effect : effects) effect -= clean_difference_;
  return effects;
}

double PathPatching::effect(size_t receiver, const std::vector<size_t>& senders) const {
  if (receiver >= graph_.receivers().size())
    fail("path patching: receiver ", receiver, ". Receivers of this graph are 0 to ",
         graph_.receivers().size() - 1, ".");
  Tensor change = Tensor::zeros(streams_[0].shape(), changes_.dtype(), changes_.device());
  for (const size_t sender : senders) {
    if (const size_t count = graph_.num_senders(receiver); sender >= count)
      fail("path patching: sender ", sender, " is not before ", graph_.receivers()[receiver].name(),
           ". Senders before it are 0 to ", count - 1, ".");
    const auto index = static_cast<int64_t>(sender);
    change = change + slice(changes_, 0, index, index + 1);
  }
  return effects_of_changes(receiver, change)[0];
}

std::vector<double> PathPatching::effects() const {
  constexpr int64_t max_tokens = 4096;  // tokens in one batch
  const int64_t max_rows = std::max<int64_t>(max_tokens / changes_.extent(1), 1);
  const auto num_receivers = graph_.receivers().size();
  std::vector<double> out;
  CountedWork work(static_cast<double>(num_receivers));
  for (size_t receiver = 0; receiver < num_receivers; ++receiver) {
    const auto senders = static_cast<int64_t>(graph_.num_senders(receiver));
    for (int64_t first = 0; first < senders; first += max_rows) {
      const Tensor changes = slice(changes_, 0, first, std::min(first + max_rows, senders));
      const std::vector<double> effects = effects_of_changes(receiver, changes);
      out.insert(out.end(), effects.begin(), effects.end());
    }
    work.add();
  }
  return out;
}

}  // namespace heed
