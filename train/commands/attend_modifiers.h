// The settings of a model that act on heads and scores, as options of heed attend.
#pragma once

#include "heed/nn/attention.h"
#include "heed/train/program.h"

namespace heed {

/// `options` followed by those that read_modifiers() reads.
std::vector<CommandOption> with_modifier_options(std::vector<CommandOption> options);
/// Reads modifiers by the rules of model.position, model.softcap and so on. Fails naming the option.
Modifiers read_modifiers(const ParsedArguments& arguments);

}  // namespace heed
