// Groups of parameters with a weight decay, a learning rate or a rest of their own.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "heed/core/tensor.h"

namespace heed {

class Fields;

/// The update rule of a group: that of OptimizerKind, or with OptimizerKind::muon the given one.
enum class GroupUpdate { by_kind, muon, adamw };

/// Parameters whose update differs from that of the others. A parameter belongs to the first group that names
/// it.
struct ParameterGroup {
  /// Dotted names of parameters, in which * stands for any letters and ? for one: "encoder.*.bias". With
  /// `predicate` a text without * and ? is a name of the group for messages.
  std::string match = {};
  /// Chooses parameters by name and value, among those of a `match` with * or ?; programs alone can set it.
  std::function<bool(const std::string& name, const Tensor& parameter)> predicate = {};
  /// Weight decay of all its parameters, vectors too; empty: as without a group.
  std::optional<double> weight_decay = {};
  double rate = 1;                            ///< multiplies the learning rate
  bool frozen = false;                        ///< its parameters have no gradient and never change
  GroupUpdate update = GroupUpdate::by_kind;  ///< the update rule, with OptimizerKind::muon
  /// Names weight_decay, rate, frozen and update, for settings.
  void fields(Fields& f);
};

/// The groups as one text: "*.bias: weight_decay=0; encoder.*: rate=0.1, frozen=true".
std::string to_string(const std::vector<ParameterGroup>& groups);
/// The groups of such a text; none of an empty one. Fails at what cannot be read, and for a group without
/// options; `where` begins the message.
std::vector<ParameterGroup> parse_groups(const std::string& groups, const std::string& where);
/// Fails unless rates and decays are finite and at least 0.
void check_groups(const std::vector<ParameterGroup>& groups);

/// The index of the first group that chooses a parameter of this name; -1: none.
int64_t group_of(const std::vector<ParameterGroup>& groups, const std::string& name, const Tensor& parameter);
/// The `count` names that need the fewest edits to match a pattern, such as "encodr.*"; the nearest first.
std::vector<std::string> names_near(const std::string& pattern, const std::vector<std::string>& names,
                                    size_t count);

}  // namespace heed
