// What heed attend takes of a model's settings: that which acts on heads and scores.
#pragma once

#include "heed/nn/attention.h"
#include "heed/train/commands/command.h"

namespace heed {

/// The options of a command that takes modifiers, after its own.
std::vector<CommandOption> with_modifiers(std::vector<CommandOption> options);
/// What a call asks for, by the rules of model.position, model.softcap and so on. Fails naming the option.
Modifiers read_modifiers(const ParsedArguments& arguments);

}  // namespace heed
