// Warnings and errors of the first steps of a training loop of one's own.
#include "heed/train/optim/step_checks.h"

#include <algorithm>

#include "heed/autograd/backward_findings.h"
#include "heed/core/error.h"
#include "heed/core/io/files.h"

namespace heed {
namespace {

void warn(const std::string& words) { io::print_error("optimizer: " + words + "\n"); }

/// Fails for a parameter that the optimizer alone still has.
void check_in_use(std::span<const Tensor> leaves, const std::vector<std::string>& names) {
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (leaves[i].node().use_count() > 1) continue;
    fail("optimizer: the parameter ", names[i],
         " was replaced after the optimizer was made, or its module is gone, so that a step would change "
         "nothing in use. Make the optimizer last, and set weights with copy_().");
  }
}

void warn_of_omitted_dropout(double rate) {
  warn(text(
      "the forward pass of this step left out dropout = ", rate,
      ", since ForwardContext::rng is null.\nPass {.rng = &rng} to the model, or make it with dropout = 0."));
}

/// Warns of the parameters that no gradient has reached in `steps` steps.
void warn_of_unreached(std::span<const Tensor> leaves, const std::vector<std::string>& names,
                       const std::vector<bool>& reached, int64_t steps) {
  const auto first = static_cast<size_t>(std::find(reached.begin(), reached.end(), false) - reached.begin());
  if (first == reached.size()) return;
  const auto count = std::count(reached.begin(), reached.end(), false);
  warn(text("no gradient has reached ", names[first], " ", leaves[first].shape(),
            count > 1 ? text(" and ", count - 1, " more") : std::string(), " in ", steps,
            " steps.\nUse it in forward(), take it out of fields(), or freeze() it."));
}

}  // namespace

void StepChecks::before_update(std::span<const Tensor> leaves, const std::vector<std::string>& names) {
  constexpr int64_t steps_to_reach_all = 10;
  check_in_use(leaves, names);
  const BackwardFindings found = take_backward_findings();
  if (found.omitted_dropout > 0 && !has_warned_of_dropout_) warn_of_omitted_dropout(found.omitted_dropout);
  has_warned_of_dropout_ |= found.omitted_dropout > 0;
  ++steps_;
  if (steps_ > steps_to_reach_all) return;
  reached_.resize(leaves.size());
  for (size_t i = 0; i < leaves.size(); ++i) reached_[i] = reached_[i] || !leaves[i].node()->fresh;
  if (steps_ == 1) {
    if (std::find(reached_.begin(), reached_.end(), true) == reached_.end())
      warn("no parameter has a gradient at the first step.\nCall backward(loss) before step().");
    for (const StrayLeaf& stray : found.strays) strays_.push_back(stray.leaf);
  } else if (steps_ == 2) {
    for (const StrayLeaf& stray : found.strays) {
      const auto leaf = stray.leaf.lock();
      const auto is_it = [&](const std::weak_ptr<Node>& other) { return leaf && other.lock() == leaf; };
      if (!std::any_of(strays_.begin(), strays_.end(), is_it) || leaf->in_arena) continue;
      warn(text("a leaf ", leaf->shape, ", read by ", stray.op,
                ", gets gradients and belongs to no optimizer.\nList it in the fields() of its module, or "
                "detach() it where it is not trained."));
      break;
    }
    strays_.clear();
  } else if (steps_ == steps_to_reach_all) {
    warn_of_unreached(leaves, names, reached_, steps_to_reach_all);
  }
}

}  // namespace heed
