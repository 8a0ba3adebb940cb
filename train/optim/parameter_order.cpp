// Sorts parameters for the arena of an optimizer.
#include "heed/train/optim/parameter_order.h"

#include <algorithm>
#include <tuple>
#include <unordered_set>

namespace heed {
namespace {

/// Whether a parameter is updated as a matrix between hidden states: as its group says, else if it is one.
bool is_hidden_matrix(const Named& one, const ParameterGroup* group,
                      const std::unordered_set<const Tensor*>& hidden) {
  const GroupUpdate update = group == nullptr ? GroupUpdate::by_kind : group->update;
  if (update == GroupUpdate::muon && one.tensor->rank() != 2)
    fail("optimizer: the group ", shown(group->match), " gives ", one.name, " ", one.tensor->shape(),
         " to muon, which updates matrices: tensors with two axes. Write update=adamw, or name fewer.");
  return update == GroupUpdate::muon ||
         (update == GroupUpdate::by_kind && one.tensor->rank() == 2 && hidden.contains(one.tensor));
}

}  // namespace

std::vector<OrderedParameter> ordered(Module& module, const std::vector<Named>& parameters,
                                      const OptimizerOptions& options) {
  const bool has_muon = options.kind == OptimizerKind::muon;
  for (const ParameterGroup& group : options.groups) {
    if (has_muon || group.update == GroupUpdate::by_kind) continue;
    OptimizerKind kind = options.kind;
    fail("optimizer: the group ", shown(group.match),
         " has update=", group.update == GroupUpdate::muon ? "muon" : "adamw",
         ", which is for optimizer = muon, and this is ", choice_of(kind).word(),
         ". Take it out, or use muon.");
  }
  std::unordered_set<const Tensor*> hidden;
  const bool needs_hidden = has_muon || options.hidden_rate != 1;
  if (needs_hidden)
    for (const Named& one : hidden_matrices(module)) hidden.insert(one.tensor);
  std::vector<OrderedParameter> out;
  for (const Named& one : parameters) {
    const int64_t index = group_of(options.groups, one.name, *one.tensor);
    const ParameterGroup* group = index < 0 ? nullptr : &options.groups[static_cast<size_t>(index)];
    out.push_back(
        {&one, index, one.tensor->rank() < 2, needs_hidden && is_hidden_matrix(one, group, hidden)});
  }
  if (needs_hidden && std::ranges::none_of(out, &OrderedParameter::is_hidden))
    fail("optimizer: ", has_muon ? "muon" : "hidden_rate",
         " is for matrices between hidden states, and the module has none. List them by Fields::matrix(), or "
         "use adamw with hidden_rate = 1.");
  std::ranges::stable_sort(out, {}, [has_muon](const OrderedParameter& one) {
    return std::tuple(has_muon && !one.is_hidden, one.group, one.is_vector, one.is_hidden);
  });
  return out;
}

void check_used(const std::vector<Named>& tensors, const std::vector<ParameterGroup>& groups) {
  std::vector<bool> used(groups.size());
  std::vector<std::string> names;
  for (const Named& one : tensors) {
    if (const int64_t group = group_of(groups, one.name, *one.tensor); group >= 0)
      used[static_cast<size_t>(group)] = true;
    names.push_back(one.name);
  }
  const auto unused = std::ranges::find(used, false);
  if (unused == used.end()) return;
  const std::string& match = groups[static_cast<size_t>(unused - used.begin())].match;
  std::string near;
  for (const std::string& name : names_near(match, names, 3)) near += (near.empty() ? "" : ", ") + name;
  fail("optimizer: the group ", shown(match),
       " chooses no parameter that earlier groups lack. Near it are: ", near,
       ". heed::summary(model) lists all.");
}

}  // namespace heed
